/**
 * Records the calls of a server to its container engine with their durations, and the starts of its
 * processes, in milliseconds of Unix time. It is loaded before the server's program, and writes later, so
 * that the write is not measured.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env.BENCH_TRACE
const WRITE_MS = 200
/** Streamed responses and calls that are not part of a start. */
const BESIDE = /\/(?:events|logs|stats|_ping)\b/
/** Ids and names in the paths of calls. */
const SINGLE = /\/v1\.\d+|(?<=\/(?:containers|networks|images)\/)[^/?]{9,}|\?.*/g

let records = []
const now = () => performance.timeOrigin + performance.now()
const record = (what, called, ended) => {
  if (records.length === 0) setTimeout(write, WRITE_MS).unref()
  records.push(JSON.stringify({ what, called, ended }))
}
const write = () => {
  appendFileSync(file, `${records.join('\n')}\n`)
  records = []
}

if (file !== undefined && isMainThread) {
  const called = new Map()
  subscribe('http.client.request.start', ({ request }) => {
    if (!BESIDE.test(request.path) && !request.path.startsWith('/relay/')) called.set(request, now())
  })
  subscribe('http.client.response.finish', ({ request, response }) => {
    const start = called.get(request)
    if (start === undefined) return
    called.delete(request)
    const call = `${request.method} ${request.path.replaceAll(SINGLE, '')}`
    response.once('end', () => record(call, start, now()))
  })
  subscribe('tracing:child_process.spawn:start', () => record('spawn', now(), now()))
}
