/**
 * The process that holds connections open: long polls, each sent again when it is answered, or upgraded sockets
 * without traffic. It sends `{ open }` once all are open, or `{ error }`, and ends when it is killed.
 */
import { connect } from 'node:net'

/** Connections to hold. */
export interface HoldTask {
  readonly port: number
  /** The whole request of each connection. */
  readonly requests: readonly string[]
  /** Time after which a poll counts as held, in milliseconds; null for sockets, which are open after their upgrade. */
  readonly heldMs: number | null
}

/** Number of connections that are opened at once. */
const AT_ONCE = 16

process.once('message', ({ port, requests, heldMs }: HoldTask) => {
  const fail = (problem: string) => process.send?.({ error: problem }, () => process.exit(1))
  let [begun, open] = [0, 0]
  const opened = () => {
    open += 1
    if (open === requests.length) process.send?.({ open })
    else next()
  }
  const next = () => {
    const request = requests[begun]
    if (request === undefined) return
    begun += 1
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => {
      socket.write(request)
      if (heldMs !== null) setTimeout(opened, heldMs)
    })
    socket.on('data', bytes => {
      const head = bytes.toString('latin1', 0, 12)
      if (heldMs === null) {
        if (head !== 'HTTP/1.1 101') fail(`a socket was not upgraded: ${bytes.toString('latin1')}`)
        opened()
      } else if (/^HTTP\/1.1 (?:200|204|400)/.test(head)) socket.write(request)
      else fail(`a poll was refused: ${bytes.toString('latin1')}`)
    })
    socket.on('error', error => fail(error.message))
    socket.on('close', () => fail('a connection was closed'))
  }
  for (let n = 0; n < AT_ONCE; n += 1) next()
})
process.send?.('ready')
