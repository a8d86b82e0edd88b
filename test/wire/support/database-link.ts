/**
 * The network between servers and PostgreSQL: each server can be cut off from it, and what was on its way comes late.
 */
import { connect, createServer, type Socket } from 'node:net'
import { atEnd } from './cleanup.ts'

/** Setting in the sessions of a server by which the link identifies it. */
const TAG = 'torture.server'

/** A link to a PostgreSQL. */
export interface DatabaseLink {
  /** The address for a server: the same for all of them, but for the name of the server. */
  urlFor(server: string): string
  /** From now on nothing passes in either direction; connections stay open, and new ones get no answer. */
  cut(server: string): void
  /** Everything passes again, also what was on its way. */
  mend(server: string): void
}

/** Opens a link to the database with this address. */
export async function linkTo(url: string): Promise<DatabaseLink> {
  const { hostname, port } = new URL(url)
  const open = new Map<Socket, { readonly other: Socket; server: string }>()
  const cutOff = new Set<string>()
  const hold = (socket: Socket, isHeld: boolean) => (isHeld ? socket.pause() : socket.resume())
  const listener = createServer(client => {
    const other = connect(Number(port), hostname)
    const pair = { other, server: '' }
    open.set(client, pair)
    client.once('data', first => {
      const text = first.toString('latin1')
      const at = text.indexOf(`${TAG}=`)
      pair.server = at < 0 ? '' : (/^[\w-]+/.exec(text.slice(at + TAG.length + 1))?.[0] ?? '')
      other.write(first)
      client.pipe(other)
      other.pipe(client)
      if (cutOff.has(pair.server)) hold(client, true)
    })
    for (const [one, its] of [
      [client, other],
      [other, client],
    ] as const) {
      one.on('error', () => its.destroy())
      one.on('close', () => {
        its.destroy()
        open.delete(client)
      })
    }
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    for (const [client] of open) client.destroy()
    listener.close()
  })
  const all = (server: string, isHeld: boolean) => {
    for (const [client, pair] of open) {
      if (pair.server !== server) continue
      hold(client, isHeld)
      hold(pair.other, isHeld)
    }
  }
  return {
    urlFor(server) {
      const linked = new URL(url)
      linked.port = String((listener.address() as { port: number }).port)
      linked.searchParams.set('options', `-c ${TAG}=${server}`)
      return linked.href.replaceAll('+', '%20')
    },
    cut(server) {
      cutOff.add(server)
      all(server, true)
    },
    mend(server) {
      cutOff.delete(server)
      all(server, false)
    },
  }
}
