/**
 * The backend of proxies: sends a constant response, and echoes all bytes after an upgrade. It does as little as
 * possible. As a program it listens on the port of `PORT`, or a free one that it prints.
 */
import { type AddressInfo, createServer, type Server } from 'node:net'

/** The body of each response. */
export const BODY = JSON.stringify({ ok: true, text: 'hello '.repeat(8) })
const RESPONSE = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nServer: bench\r\nDate: Sun, 22 Nov 2026 04:00:00 GMT\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`
const SWITCH = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'

/** Makes the server of the backend. */
export function backend(): Server {
  const response = Buffer.from(RESPONSE)
  return createServer({ noDelay: true }, socket => {
    let upgraded = false
    let received = ''
    socket.on('error', () => {})
    socket.on('data', bytes => {
      if (upgraded) {
        socket.write(bytes)
        return
      }
      received += bytes.toString('latin1')
      for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
        upgraded = /\r\nupgrade:/i.test(received.slice(0, end))
        received = received.slice(end + 4)
        socket.write(upgraded ? SWITCH : response)
      }
    })
  })
}

if (import.meta.main) {
  const server = backend()
  server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', 4_096, () =>
    console.log((server.address() as AddressInfo).port),
  )
}
