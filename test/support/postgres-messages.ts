/** A way to a PostgreSQL that counts messages. */

import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

/** A counted way to a PostgreSQL. */
export interface CountedPostgres {
  /** The address of the database on this way. */
  readonly url: string
  /** Number of answers so far, each to one message with any number of statements. */
  readonly answers: number
  /** Number of statements so far that were run to their ends. */
  readonly statements: number
  close(): Promise<void>
}

/** Length of the type and the size before each message. */
const HEAD_BYTES = 5
const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const COMMAND_COMPLETE = 'C'.charCodeAt(0)

/** Opens a way to the database of an address. */
export async function countPostgres(address: string): Promise<CountedPostgres> {
  const target = new URL(address)
  const sockets = new Set<Socket>()
  let answers = 0
  let statements = 0
  const server = createServer(client => {
    const database = connect(Number(target.port || 5_432), target.hostname)
    const count = messageReader(type => {
      if (type === READY_FOR_QUERY) answers += 1
      if (type === COMMAND_COMPLETE) statements += 1
    })
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => [client, database].forEach(end => void end.destroy()))
    }
    database.on('data', (piece: Buffer) => {
      count(piece)
      client.write(piece)
    })
    client.on('data', (piece: Buffer) => database.write(piece))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(address)
  url.host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: url.href,
    get answers() {
      return answers
    },
    get statements() {
      return statements
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      return new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

/** Reads the messages of a PostgreSQL piece by piece, and calls with the type of each. */
function messageReader(received: (type: number) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return piece => {
    rest = Buffer.concat([rest, piece])
    while (rest.length >= HEAD_BYTES) {
      const end = 1 + rest.readInt32BE(1)
      if (rest.length < end) return
      received(rest[0]!)
      rest = rest.subarray(end)
    }
  }
}
