/** Endpoints by their names, wherever a command takes an id. */
import { nearest } from '../../core/nearest.ts'
import { CliError, EXIT } from '../exit.ts'
import type { ConnectionOptions } from './connection.ts'
import { pages } from './pages.ts'

interface Named {
  readonly id: string
  readonly name: string
}

/**
 * Does something with an endpoint, or with anything that has an id. What the server does not know as an id may be the name of an endpoint; only then are the
 * endpoints listed.
 * @param given an id or a name
 * @param act is called with the id, again with that of the endpoint of this name where the server knew none; it must not have printed anything by then
 * @throws CliError what `act` throws; with the closest name where there is none of this name
 */
export async function withEndpointName<Result>(
  options: ConnectionOptions,
  given: string,
  act: (id: string) => Promise<Result>,
): Promise<Result> {
  try {
    return await act(given)
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error
    const id = await idOfName(options, given, error)
    return act(id)
  }
}

async function idOfName(options: ConnectionOptions, given: string, unknown: CliError): Promise<string> {
  // A key for jobs alone may not list endpoints.
  const known = (await pages(options, '/v2/serverless', 'endpoints').catch(() => [])) as unknown as Named[]
  const named = known.filter(({ name }) => name === given)
  if (named.length === 1) return named[0]!.id
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(', ')
    throw new CliError(`${named.length} endpoints are named '${given}'; give the id of one: ${ids}`, EXIT.usage)
  }
  const close = nearest(given, [...known.map(({ name }) => name), ...known.map(({ id }) => id)])
  throw close === null ? unknown : new CliError(`${unknown.message}; did you mean ${close}?`, EXIT.notFound)
}
