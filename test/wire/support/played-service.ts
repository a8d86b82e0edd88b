/** A Service of a cluster that has no kube-proxy: an address of this machine that leads where the Service does. */
import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './cleanup.ts'

/** Target of a connection. */
export interface Target {
  readonly host: string
  readonly port: number
}

/**
 * Listens on an address that pods reach and passes each connection on.
 * @param target target of a new connection; null refuses it
 * @returns the port
 */
export function playService(address: string, target: () => Target | null): Promise<number> {
  const open = new Set<Socket>()
  const server = createServer(socket => {
    const place = target()
    if (place === null) return void socket.destroy()
    const other = connect(place)
    for (const [one, end] of [
      [socket, other],
      [other, socket],
    ] as const) {
      open.add(one)
      one.on('error', () => end.destroy())
      one.on('close', () => {
        open.delete(one)
        end.destroy()
      })
      one.pipe(end)
    }
  })
  atEnd(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  return new Promise(resolve =>
    server.listen(0, address, () => resolve((server.address() as { readonly port: number }).port)),
  )
}
