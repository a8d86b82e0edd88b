import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { jsonText } from '../../core/json/json-format.ts'
import { REQUEST_ID } from '../../core/request-head.ts'
import { accessProblem } from '../../disk/access-problem.ts'
import { CliError, EXIT } from '../exit.ts'
import { requestSecurely, type Trust, trustProblem } from './https.ts'
import { RefusedRequest } from './option-fields.ts'
import { redirectText, serverAddress, strangerText, unreachableText } from './server-address.ts'

/** Options that name the server. */
export interface ConnectionOptions {
  readonly url?: string
  readonly apiKey?: string
  readonly dataDir?: string
  readonly caFile?: string
  readonly json?: boolean
}

/** Adds the options of every command that connects to a server. */
export function withConnection(command: Command): Command {
  for (const [flags, description] of CONNECTION)
    command.addOption(new Option(flags, description).helpGroup('Connection:'))
  return command.option('--json', 'print JSON lines')
}

const CONNECTION = [
  ['--url <url>', 'the server (default: RUNYARD_URL, else that of the data directory)'],
  ['--api-key <key>', 'its key (default: RUNYARD_API_KEY, else as above)'],
  ['--data-dir <folder>', 'of a server on this machine (default: ./.runyard)'],
  ['--ca-file <file>', 'certificates to trust, in PEM (default: RUNYARD_CA_FILE)'],
] as const

/** Options of a request. Default: GET without a body. */
export interface CliRequest {
  readonly method?: string
  /** Sent as JSON; a `JsonText` anywhere in it as the text that it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/**
 * Sends a request to the server.
 * @throws CliError with the remedy, if the server is unreachable or refuses
 */
export async function ask(options: ConnectionOptions, path: string, request: CliRequest = {}): Promise<Response> {
  const { url, apiKey, trust } = readConnection(options)
  const { method = 'GET', body, headers = {}, signal } = request
  const requestOptions = {
    method,
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: jsonText(body) }),
    ...(signal === undefined ? {} : { signal }),
  }
  let answer: Response
  try {
    // A redirect leads to HTTPS, and people must see that a key was sent in plain HTTP.
    if (/^https:/i.test(url)) answer = await requestSecurely(`${url}${path}`, requestOptions, trust)
    else answer = await fetch(`${url}${path}`, { ...requestOptions, redirect: 'manual' })
  } catch (error) {
    throw unreachable(url, error as Error)
  }
  const stranger = describeOtherServer(answer, url, path)
  if (stranger !== null) throw new CliError(stranger, EXIT.unavailable)
  if (answer.ok) return answer
  throw await refusal(answer, url)
}

/** The problem of a redirect, or of a response that is not from Runyard; null for a response of Runyard. */
function describeOtherServer(answer: Response, url: string, path: string): string | null {
  if (answer.status >= 300 && answer.status < 400) {
    const elsewhere = redirectText(url, path, answer)
    if (elsewhere !== null) return elsewhere
  }
  // A proxy may remove the id.
  const type = answer.headers.get('content-type') ?? ''
  const isOurs = answer.headers.has(REQUEST_ID) || (answer.ok ? !type.startsWith('text/html') : /\bjson\b/.test(type))
  return isOurs ? null : strangerText(url, answer)
}

function unreachable(url: string, error: Error): CliError {
  const untrusted = trustProblem(error)
  if (untrusted !== null) return new CliError(`the certificate of ${url} ${untrusted}`, EXIT.unavailable)
  const cause = (error as { cause?: NodeJS.ErrnoException }).cause ?? error
  const first = cause instanceof AggregateError ? (cause.errors[0] as NodeJS.ErrnoException) : cause
  return new CliError(unreachableText(url, first), EXIT.unavailable)
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

async function refusal(answer: Response, url: string): Promise<CliError> {
  const text = await answer.text().catch(() => '')
  // A server that requires HTTPS answers with a sentence.
  const words = answer.headers.get('content-type')?.startsWith('text/plain') === true ? text.trim().slice(0, 300) : ''
  const otherwise = `the server at ${url} answered ${answer.status}${words === '' ? '' : `: ${words}`}`
  const body = readErrorAnswer(text)
  const sentence = refusalText(body, otherwise)
  const requestId = answer.headers.get(REQUEST_ID)
  const exitCode = EXIT_OF_STATUS[answer.status] ?? EXIT.unavailable
  // The log of the server has the cause, beside this id.
  if (answer.status >= 500 && requestId !== null) return new CliError(`${sentence} (request ${requestId})`, exitCode)
  return new RefusedRequest(sentence, exitCode, failuresIn(body))
}

/** The sentences of a refused request, on any surface. */
function failuresIn({ error, detail, errors = [] }: ErrorAnswer): string[] {
  const failures = errors.filter(failure => typeof failure === 'string')
  if (failures.length > 0) return failures
  const reason = error ?? detail
  return typeof reason === 'string' ? [reason] : []
}

function readErrorAnswer(text: string): ErrorAnswer {
  try {
    return (JSON.parse(text) ?? {}) as ErrorAnswer
  } catch {
    return {}
  }
}

/** Possible members of an error body. */
interface ErrorAnswer {
  readonly error?: string
  readonly detail?: string
  readonly errors?: readonly unknown[]
}

/**
 * The error message of a response, in the format of any surface.
 * @param otherwise message for a body without one
 */
export function refusalText({ error, detail, errors = [] }: ErrorAnswer, otherwise: string): string {
  const message = error ?? detail ?? otherwise
  const failures = errors.filter(failure => typeof failure === 'string')
  if (failures.length === 0 || (failures.length === 1 && failures[0] === message)) return message
  // Some surfaces repeat a message.
  const title = message === failures.join('; ') ? 'the request is refused:' : message
  return [title, ...failures.map(failure => `  ${failure}`)].join('\n')
}

/** True to print JSON: only where it is asked for, so that a pipe gets the same as a terminal. */
export function wantsJson(options: ConnectionOptions): boolean {
  return options.json === true
}

/** The server's URL from the options. @throws CliError as {@link ask} */
export function serverUrl(options: ConnectionOptions): string {
  return readConnection(options).url
}

/** The API key from the options. @throws CliError as {@link ask} */
export function connectionKey(options: ConnectionOptions): string {
  return readConnection(options).apiKey
}

/** The file of certificates that the options or RUNYARD_CA_FILE name; null without one. */
export function trustedFile({ caFile = process.env.RUNYARD_CA_FILE }: ConnectionOptions): string | null {
  return caFile === undefined || caFile === '' ? null : caFile
}

function readConnection(options: ConnectionOptions): { url: string; apiKey: string; trust: Trust } {
  const folder = resolve(options.dataDir ?? process.env.RUNYARD_DATA_DIR ?? './.runyard')
  const text = options.url ?? (process.env.RUNYARD_URL || null)
  const given = text === null ? null : serverAddress(text, urlSource(options))
  const server = given === null ? readServer(folder) : null
  const url = given ?? server?.url ?? null
  const apiKey = options.apiKey ?? process.env.RUNYARD_API_KEY ?? readText(join(folder, 'api-key'))
  const needed = url === null ? 'server.json' : apiKey === null ? 'api-key' : null
  const closed = needed === null ? null : accessProblem(join(folder, needed), 'read')
  if (closed !== null)
    throw new CliError(
      `the data directory ${folder} cannot be used: ${closed}; run this as its owner, or give --url and --api-key`,
      EXIT.refused,
    )
  if (url === null)
    throw new CliError(`no server runs on ${folder}; give --url, or start one with: runyard serve`, EXIT.unavailable)
  if (apiKey === null)
    throw new CliError(`there is no API key in ${folder}; set RUNYARD_API_KEY, or give --api-key`, EXIT.refused)
  const trust = { extra: extraTrust(options, folder), pinned: server?.certificate ?? null }
  return { url, apiKey: apiKey.trim(), trust }
}

function urlSource({ url }: ConnectionOptions): string {
  return url === undefined && process.env.RUNYARD_URL ? 'RUNYARD_URL' : '--url'
}

/** The server that runs on a data directory, and its certificate; null without one. */
function readServer(folder: string): { readonly url: string; readonly certificate?: string } | null {
  const text = readText(join(folder, 'server.json'))
  return text === null ? null : JSON.parse(text)
}

/**
 * Certificates that are trusted besides: those of a file that was given, or the one that a server with this data
 * directory has made.
 */
function extraTrust(options: ConnectionOptions, folder: string): string | null {
  const caFile = trustedFile(options)
  if (caFile === null) return readText(join(folder, 'tls', 'certificate.pem'))
  const text = readText(caFile)
  if (text?.includes('-----BEGIN CERTIFICATE-----') === true) return text
  const closed = text === null ? (accessProblem(caFile, 'read') ?? `there is no file ${caFile}`) : null
  throw new CliError(closed === null ? `${caFile} has no certificate in PEM` : `--ca-file: ${closed}`, EXIT.usage)
}

function readText(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
