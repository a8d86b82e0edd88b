import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { CliError, EXIT } from '../exit.ts'

/** Options that name the server. */
export interface ConnectionOptions {
  readonly url?: string
  readonly apiKey?: string
  readonly dataDir?: string
  readonly json?: boolean
}

/** Adds the options of every command that connects to a server. */
export function withConnection(command: Command): Command {
  return command
    .option('--url <url>', 'address of the server (default: RUNYARD_URL, else the server of the data directory)')
    .option('--api-key <key>', 'API key (default: RUNYARD_API_KEY, else the one in the data directory)')
    .option('--data-dir <folder>', 'data directory of a server on this machine (default: ./.runyard)')
    .option('--json', 'print JSON lines')
}

/** Options of a request. Default: GET without a body. */
export interface CliRequest {
  readonly method?: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/**
 * Sends a request to the server.
 * @throws CliError that says what to do, if the server is unreachable or refuses
 */
export async function ask(options: ConnectionOptions, path: string, request: CliRequest = {}): Promise<Response> {
  const { url, apiKey } = connectionOf(options)
  const { method = 'GET', body, headers = {}, signal } = request
  let answer: Response
  try {
    answer = await fetch(`${url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    const cause = (error as { cause?: Error }).cause?.message ?? (error as Error).message
    throw new CliError(`no server answers at ${url} (${cause})`, EXIT.unavailable)
  }
  if (answer.ok) return answer
  throw new CliError(await refusal(answer, url), EXIT_OF_STATUS[answer.status] ?? EXIT.unavailable)
}

const EXIT_OF_STATUS: Readonly<Record<number, number>> = {
  400: EXIT.data,
  401: EXIT.refused,
  403: EXIT.refused,
  404: EXIT.notFound,
  405: EXIT.data,
  409: EXIT.data,
  413: EXIT.data,
}

async function refusal(answer: Response, url: string): Promise<string> {
  const said = (await answer.json().catch(() => ({}))) as Said
  return refusalText(said, `the server at ${url} answered ${answer.status}`)
}

/** Possible members of an error body. */
interface Said {
  readonly error?: string
  readonly detail?: string
  readonly errors?: readonly unknown[]
}

/**
 * The error message of a response, in the format of any surface.
 * @param otherwise message for a body without one
 */
export function refusalText({ error, detail, errors = [] }: Said, otherwise: string): string {
  const message = error ?? detail ?? otherwise
  const failures = errors.filter(failure => typeof failure === 'string')
  if (failures.length === 0 || (failures.length === 1 && failures[0] === message)) return message
  // Some surfaces repeat a message.
  const title = message === failures.join('; ') ? 'the request is refused:' : message
  return [title, ...failures.map(failure => `  ${failure}`)].join('\n')
}

/** Whether to print JSON: only where it is asked for, so that a pipe gets what a terminal shows. */
export function wantsJson(options: ConnectionOptions): boolean {
  return options.json === true
}

/** The server's URL from the options. @throws CliError as {@link ask} */
export function urlOf(options: ConnectionOptions): string {
  return connectionOf(options).url
}

function connectionOf(options: ConnectionOptions): { url: string; apiKey: string } {
  const folder = resolve(options.dataDir ?? process.env.RUNYARD_DATA_DIR ?? './.runyard')
  const url = options.url ?? process.env.RUNYARD_URL ?? readServerUrl(folder)
  const apiKey = options.apiKey ?? process.env.RUNYARD_API_KEY ?? readText(join(folder, 'api-key'))
  if (url === null)
    throw new CliError(`no server runs on ${folder}; give --url, or start one with: runyard serve`, EXIT.unavailable)
  if (apiKey === null) throw new CliError(`there is no API key in ${folder}; give --api-key`, EXIT.refused)
  return { url: url.replace(/\/+$/, ''), apiKey: apiKey.trim() }
}

function readServerUrl(folder: string): string | null {
  const text = readText(join(folder, 'server.json'))
  return text === null ? null : (JSON.parse(text) as { url: string }).url
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
