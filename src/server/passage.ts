/** A socket in the file system that leads to a listener: handshakes of TLS need an address. */
import { connect, createServer } from 'node:net'
import { joinSockets } from '../disk/joined-sockets.ts'
import { listenAtFile } from '../disk/socket-file.ts'
import type { Listener } from './listener.ts'

/**
 * Leads connections of a socket in the file system to a listener on loopback, and ends with it.
 * @throws the system's error when the socket cannot be opened; the listener is closed then
 */
export async function withPassage(listener: Listener, file: string, maxConnections: number): Promise<Listener> {
  const server = createServer({ allowHalfOpen: true }, outer => {
    const inner = connect({ host: '127.0.0.1', port: listener.port, allowHalfOpen: true, noDelay: true })
    joinSockets(outer, inner)
  })
  server.maxConnections = maxConnections
  await listenAtFile(server, file).catch(async error => {
    await listener.close(0)
    throw error
  })
  return {
    url: listener.url,
    port: listener.port,
    makeRoom: () => listener.makeRoom(),
    take: listener.take,
    async close(graceMs) {
      server.close()
      await listener.close(graceMs)
    },
  }
}
