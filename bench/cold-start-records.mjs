/**
 * Records in a file the start of a worker's process, and of each of its calls the request and the response, in
 * milliseconds of Unix time. It is loaded before the worker's program.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

const file = process.env.BENCH_RECORDS
const record = (what, at = performance.timeOrigin + performance.now()) => appendFileSync(file, `${what} ${at}\n`)
const callKind = path => (path.includes('/job-take') ? 'take' : path.includes('/job-done/') ? 'done' : null)

if (file !== undefined) {
  record('began', performance.timeOrigin)
  subscribe('http.client.request.created', ({ request }) => {
    const kind = callKind(request.path)
    if (kind === null) return
    // The time of the connect belongs to the worker; the request is sent right after it.
    const called = () => record(`${kind}-sent`)
    request.once('socket', socket => (socket.connecting ? socket.prependOnceListener('connect', called) : called()))
  })
  subscribe('http.client.response.finish', ({ request, response }) => {
    const kind = callKind(request.path)
    if (kind !== null && response.statusCode === 200) record(`${kind}-responded`)
  })
}
