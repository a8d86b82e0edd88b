/**
 * Loaded before a worker's program: writes into a file when its process began and when its calls leave it and are answered.
 * Milliseconds of Unix time.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync } from 'node:fs'

const file = process.env.BENCH_NOTES
const note = (what, at = performance.timeOrigin + performance.now()) => appendFileSync(file, `${what} ${at}\n`)
const kindOf = path => (path.includes('/job-take') ? 'take' : path.includes('/job-done/') ? 'done' : null)

if (file !== undefined) {
  note('began', performance.timeOrigin)
  subscribe('http.client.request.created', ({ request }) => {
    const kind = kindOf(request.path)
    if (kind === null) return
    // What it takes to connect is the worker's own time; right after this it is sent.
    const asked = () => note(`${kind}-asked`)
    request.once('socket', socket => (socket.connecting ? socket.prependOnceListener('connect', asked) : asked()))
  })
  subscribe('http.client.response.finish', ({ request, response }) => {
    const kind = kindOf(request.path)
    if (kind !== null && response.statusCode === 200) note(`${kind}-answered`)
  })
}
