/** Classifies requests: only the seven calls of the worker protocol are passed on. */
import { decodeBody } from '../core/bodies/body-readings.ts'
import { JOINED_RESULTS, type JoinedResult, readJoinedResults } from '../core/jobs/joined-results.ts'
import { withSingleSlashes } from '../core/request-head.ts'

/** Treatment of a call while the server is away. */
export type CallKind =
  /** Held, then answered without jobs. */
  | 'take'
  | 'poll'
  /** Held until the server has it. */
  | 'result'
  /** Several results, held in the same way. */
  | 'results'
  | 'chunk'
  /** Answered at once: it can be lost without harm. */
  | 'ping'

const KINDS: ReadonlyMap<string, CallKind> = new Map([
  ['GET job-take', 'take'],
  ['GET job-take-batch', 'take'],
  ['GET job-stop', 'poll'],
  ['POST job-done', 'result'],
  ['POST job-done-batch', 'results'],
  ['POST job-stream', 'chunk'],
  ['GET ping', 'ping'],
])

/** The kind of a call; null for a request that is no call of a worker. */
export function callKind(method: string | undefined, url: string | undefined): CallKind | null {
  const [, , name] = matchPath(url) ?? []
  return KINDS.get(`${method} ${name}`) ?? null
}

/** The endpoint that a call of a worker names. */
export function endpointFromUrl(url: string | undefined): string {
  return matchPath(url)?.[1] ?? ''
}

/**
 * The address of the result of one job, from that of a call with the results of several. Of that path only the
 * endpoint and the worker are kept: another segment would be taken for the job.
 */
export function resultUrl(url: string, jobId: string): string {
  const { pathname, search } = new URL(`http://relay${withSingleSlashes(url)}`)
  const [, , endpoint, , worker = ''] = pathname.split('/')
  const [name = ''] = worker.split('&')
  return `/v2/${[endpoint, 'job-done', name, jobId].filter(part => part !== '').join('/')}${search}`
}

/** The results in the body of a call with several; null where the server would refuse them all. */
export function splitResults(body: Uint8Array): JoinedResult[] | null {
  const text = body.byteLength > JOINED_RESULTS.bytes ? null : decodeBody([body])
  try {
    return text === null ? null : readJoinedResults(text)
  } catch {
    return null
  }
}

function matchPath(url: string | undefined): RegExpExecArray | null {
  // Parsed as the server parses it: dots may lead to another path.
  const path = url?.startsWith('/') ? (URL.parse(`http://relay${withSingleSlashes(url)}`)?.pathname ?? '') : ''
  return /^\/v2\/([^/]+)\/([a-z-]+)\//.exec(path)
}

/** Headers of one connection only, or made again for the next one. */
const HOPS =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|host|content-length|x-runyard-.*)$/i

/**
 * The headers that are passed on.
 * @param raw names and values in turn
 */
export function passedHeaders(raw: readonly string[]): string[] {
  const passed: string[] = []
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (!HOPS.test(raw[at]!)) passed.push(raw[at]!, raw[at + 1]!)
  }
  return passed
}
