/**
 * Loaded before a worker's program: records in a file when its process began and when its calls are sent and get a response.
 * Milliseconds of Unix time.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

const file = process.env.BENCH_RECORDS
const record = (what, at = performance.timeOrigin + performance.now()) => appendFileSync(file, `${what} ${at}\n`)
const kindOf = path => (path.includes('/job-take') ? 'take' : path.includes('/job-done/') ? 'done' : null)

if (file !== undefined) {
  record('began', performance.timeOrigin)
  subscribe('http.client.request.created', ({ request }) => {
    const kind = kindOf(request.path)
    if (kind === null) return
    // The time to connect belongs to the worker; the request is sent right after this.
    const called = () => record(`${kind}-sent`)
    request.once('socket', socket => (socket.connecting ? socket.prependOnceListener('connect', called) : called()))
  })
  subscribe('http.client.response.finish', ({ request, response }) => {
    const kind = kindOf(request.path)
    if (kind !== null && response.statusCode === 200) record(`${kind}-responded`)
  })
}
