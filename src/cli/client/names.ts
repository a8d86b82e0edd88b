/**
 * Names wherever a command takes an id. An id comes first: a name that is the id of another thing does not hide that
 * one.
 */
import { nearest } from '../../core/nearest.ts'
import { CliError, EXIT } from '../exit.ts'
import { ask, type ConnectionOptions } from './connection.ts'
import { KINDS, type Named, type NamedKind } from './kinds.ts'

/** Maximum number of things that a message lists; a command lists the rest. */
const MOST_LISTED = 10

/** The form of ids. Other text, such as a name with blanks or the path `..`, is never sent as an id. */
const ID = /^[A-Za-z0-9_-]{1,191}$/

/**
 * Acts on a thing of a kind, or on anything that has an id. A text that the server rejects as an id may be a name;
 * only then are the things listed.
 * @param given an id or a name
 * @param act is called with the given text, and again with an id where that text was a name; the first call must
 *   print nothing then
 * @throws CliError the error of `act`; with candidates for a name of several things or of nothing
 */
export async function withName<Result>(
  options: ConnectionOptions,
  kind: NamedKind,
  given: string,
  act: (id: string) => Promise<Result>,
): Promise<Result> {
  if (!ID.test(given)) return act(chooseId(await kind.list(options), kind, given, null))
  try {
    return await act(given)
  } catch (error) {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.notFound) throw error
    // A key for jobs alone may list nothing.
    const listed = await kind.list(options).catch(() => null)
    if (listed === null) throw error
    return act(chooseId(listed, kind, given, error))
  }
}

/** As {@link withName}, for endpoints. */
export function withEndpointName<Result>(
  options: ConnectionOptions,
  given: string,
  act: (id: string) => Promise<Result>,
): Promise<Result> {
  return withName(options, KINDS.endpoints, given, act)
}

/**
 * The id of a thing that an option names, for the body or the query of a request.
 * @param given an id or a name
 * @param flag the option, which messages begin with
 * @returns the text itself for a key that may not read the things of this kind
 * @throws CliError with candidates for a name of several things or of nothing
 */
export async function findId(
  options: ConnectionOptions,
  kind: NamedKind,
  given: string,
  flag: string,
): Promise<string> {
  const isAt = (path: string, id: string) => ask(options, `${path}/${encodeURIComponent(id)}`).then(() => id)
  const isThere = (id: string) =>
    isAt(kind.path, id).catch((error: unknown) =>
      kind.secondPath === undefined
        ? Promise.reject(error)
        : isAt(kind.secondPath, id).catch(() => Promise.reject(error)),
    )
  try {
    return await withName(options, kind, given, isThere)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    if (error.exitCode === EXIT.refused) return given
    const isUnclear = error.exitCode === EXIT.notFound || error.exitCode === EXIT.usage
    throw isUnclear ? new CliError(`${flag}: ${error.message}`, error.exitCode) : error
  }
}

/** The part of a message about the existing things: their names and ids, or the command that lists them. */
export function existing(listed: readonly Named[], { many, listing }: NamedKind): string {
  if (listed.length === 0) return `there are no ${many}`
  const shown = listed.slice(0, MOST_LISTED).map(nameAndId)
  const rest = listed.length > shown.length ? ` and ${listed.length - shown.length} more: ${listing}` : ''
  return `there are the ${many} ${shown.join(', ')}${rest}`
}

function nameAndId({ id, name }: Named): string {
  return typeof name === 'string' && name !== '' && name !== id ? `${name} (${id})` : id
}

/**
 * The id of the thing with this name.
 * @param unknown the error of the server for the text as an id; null where no request was sent
 * @throws CliError with candidates for a name of several things or of nothing; `unknown` for the id of a thing
 */
export function chooseId(listed: readonly Named[], kind: NamedKind, given: string, unknown: CliError | null): string {
  // The thing exists, but a part of it does not, such as a release.
  if (unknown !== null && listed.some(({ id }) => id === given)) throw unknown
  const namedId = findNamed(listed, kind, given)
  if (namedId !== null) return namedId
  const close = nearest(given, [...listed.map(({ name }) => name ?? ''), ...listed.map(({ id }) => id)])
  const message = unknown?.message ?? `there is no ${kind.one} '${given}'`
  throw new CliError(`${message}; ${close === null ? existing(listed, kind) : `did you mean ${close}?`}`, EXIT.notFound)
}

/**
 * The id of the thing with this id or this name.
 * @returns null without a match
 * @throws CliError with candidates for a name of several things
 */
export function findNamed(listed: readonly Named[], { many }: NamedKind, given: string): string | null {
  if (listed.some(({ id }) => id === given)) return given
  const named = listed.filter(({ name }) => name === given)
  if (named.length <= 1) return named[0]?.id ?? null
  const ids = named.slice(0, MOST_LISTED).map(({ id }) => id)
  const rest = named.length > ids.length ? ` and ${named.length - ids.length} more` : ''
  throw new CliError(
    `${named.length} ${many} are named '${given}'; give the id of one: ${ids.join(', ')}${rest}`,
    EXIT.usage,
  )
}
