/**
 * Loaded before a server's program: notes when it calls its container engine and how long each call takes, and when it starts
 * processes. Written a while later, so that the writing is no part of what is measured. Milliseconds of Unix time.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

const file = process.env.BENCH_TRACE
const WRITE_MS = 200
/** Answers that come bit by bit, and what is asked on the side of everything else. */
const BESIDE = /\/(?:events|logs|stats|_ping)\b/
/** Ids and names of single things. */
const SINGLE = /\/v1\.\d+|(?<=\/(?:containers|networks|images)\/)[^/?]{9,}|\?.*/g

let notes = []
const now = () => performance.timeOrigin + performance.now()
const note = (what, asked, ended) => {
  if (notes.length === 0) setTimeout(write, WRITE_MS).unref()
  notes.push(JSON.stringify({ what, asked, ended }))
}
const write = () => {
  appendFileSync(file, `${notes.join('\n')}\n`)
  notes = []
}

if (file !== undefined && isMainThread) {
  const asked = new Map()
  subscribe('http.client.request.start', ({ request }) => {
    if (!BESIDE.test(request.path) && !request.path.startsWith('/relay/')) asked.set(request, now())
  })
  subscribe('http.client.response.finish', ({ request, response }) => {
    const start = asked.get(request)
    if (start === undefined) return
    asked.delete(request)
    const what = `${request.method} ${request.path.replaceAll(SINGLE, '')}`
    response.once('end', () => note(what, start, now()))
  })
  subscribe('tracing:child_process.spawn:start', () => note('spawn', now(), now()))
}
