import { isUtf8 } from 'node:buffer'
import { Agent, request } from 'node:http'
import type { HealthAnswer } from '../../core/balancing/health-check.ts'
import type { SocketAddress } from '../../core/workers/socket-address.ts'
import type { Probes } from '../../ports/probe.ts'

/** Bytes of a response's body that are read and dropped before the connection is cut. */
const MAX_BODY_BYTES = 64 * 1024

/**
 * Health checks over HTTP/1.1. Each has a connection of its own, so that none is answered
 * by data of an earlier one.
 */
export function createHealthProbes(): Probes {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })
  return {
    probe: (address, path, timeoutMs) => ask(agent, 'GET', address, path, timeoutMs),
    post: (address, path, timeoutMs) => ask(agent, 'POST', address, path, timeoutMs),
    read: (address, path, timeoutMs, maxBytes, bearer) =>
      read(agent, address, path, { timeoutMs, maxBytes, ...(bearer !== undefined && { bearer }) }),
  }
}

function read(
  agent: Agent,
  { host, port, socket: socketPath }: SocketAddress,
  path: string,
  { timeoutMs, maxBytes, bearer }: { readonly timeoutMs: number; readonly maxBytes: number; readonly bearer?: string },
): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }
  const headers = { 'user-agent': 'runyard-health', accept: 'application/json', connection: 'close', ...authorization }
  const call = request({ agent, host, port, path, method: 'GET', headers, ...(socketPath && { socketPath }) })
  const timer = setTimeout(() => call.destroy(), timeoutMs)
  call.on('error', () => resolve(null))
  call.on('close', () => {
    clearTimeout(timer)
    resolve(null)
  })
  call.on('upgrade', (_answer, socket) => socket.destroy())
  call.on('response', answer => {
    if (answer.statusCode !== 200) return void call.destroy()
    const parts: Buffer[] = []
    let bytes = 0
    answer.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes > maxBytes) call.destroy()
      else parts.push(part)
    })
    answer.on('error', () => {})
    answer.on('end', () => {
      if (answer.complete && bytes <= maxBytes) resolve(decodedText(Buffer.concat(parts)))
    })
  })
  call.end()
  return promise
}

function decodedText(bytes: Buffer): string | null {
  return isUtf8(bytes) ? bytes.toString('utf8') : null
}

function ask(
  agent: Agent,
  method: 'GET' | 'POST',
  { host, port, socket: socketPath }: SocketAddress,
  path: string,
  timeoutMs: number,
): Promise<HealthAnswer> {
  const { promise, resolve } = Promise.withResolvers<HealthAnswer>()
  const length = method === 'POST' ? { 'content-length': '0' } : {}
  const headers = { 'user-agent': 'runyard-health', accept: '*/*', connection: 'close', ...length }
  const call = request({ agent, host, port, path, method, headers, ...(socketPath && { socketPath }) })
  const timer = setTimeout(() => {
    resolve({ problem: `no answer within ${timeoutMs / 1000} s`, refused: false })
    call.destroy()
  }, timeoutMs)
  call.on('error', error => resolve(answerFromError(error)))
  call.on('close', () => {
    clearTimeout(timer)
    resolve({ problem: 'the connection was closed before an answer', refused: false })
  })
  // The response to an upgrade does not answer a health check.
  call.on('upgrade', (_answer, socket) => socket.destroy())
  call.on('response', answer => {
    resolve({ status: answer.statusCode ?? 0 })
    let bytes = 0
    answer.on('data', (part: Buffer) => {
      bytes += part.length
      if (bytes > MAX_BODY_BYTES) call.destroy()
    })
    answer.on('error', () => {})
  })
  call.end()
  return promise
}

/** An attempt at several addresses fails with an error that has no message of its own. */
function answerFromError(thrown: NodeJS.ErrnoException): HealthAnswer {
  const errors: NodeJS.ErrnoException[] = thrown instanceof AggregateError ? thrown.errors : [thrown]
  const refused = errors.length > 0 && errors.every(({ code }) => code === 'ECONNREFUSED' || code === 'ENOENT')
  if (refused) return { problem: 'nothing listens there', refused }
  const { code, message } = errors[0] ?? thrown
  return { problem: WORDS[code ?? ''] ?? (message === '' ? (code ?? thrown.name) : message), refused }
}

const WORDS: Readonly<Record<string, string>> = {
  ECONNRESET: 'the connection was cut before an answer',
  EPIPE: 'the connection was cut before an answer',
  EHOSTUNREACH: 'its address cannot be reached',
  ENETUNREACH: 'its network cannot be reached',
}
