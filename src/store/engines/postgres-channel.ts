import { Client } from 'pg'
import { connectionConfig } from './postgres-connection.ts'
import { errorFromPostgres } from './postgres-errors.ts'

/** Messages between all who have a channel of the same name on one database. */
export interface Channel {
  /** To all others. */
  send(messages: readonly string[]): Promise<void>
  close(): Promise<void>
}

/** Called with each message of a channel. */
export interface ChannelListener {
  readonly message: (text: string) => void
  /** The connection is gone, and messages may be, too. Comes once, and not after `close`. */
  readonly lost: () => void
}

/** Maximum size of a message, in bytes. */
export const MAX_MESSAGE_BYTES = 7_999

/**
 * Opens a channel on a connection of its own (LISTEN and NOTIFY). What is sent over it does not come back over it.
 * @throws AppError `unavailable` when PostgreSQL cannot be reached
 */
export async function openChannel(url: string, name: string, listener: ChannelListener): Promise<Channel> {
  const client = new Client(connectionConfig(url))
  let over = false
  const end = () => {
    over = true
    return client.end().catch(() => {})
  }
  const lose = () => {
    if (over) return
    void end()
    listener.lost()
  }
  try {
    await connect(client)
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ownPid = rows[0]?.pid
    client.on('notification', ({ processId, payload }) => {
      if (!over && processId !== ownPid) listener.message(payload ?? '')
    })
    client.on('end', lose)
    client.on('error', lose)
    await client.query(`LISTEN ${name}`)
  } catch (error) {
    void end()
    throw errorFromPostgres(error)
  }
  return {
    async send(messages) {
      try {
        await client.query('SELECT pg_notify($1, message) FROM unnest($2::text[]) AS message', [name, messages])
      } catch (error) {
        lose()
        throw errorFromPostgres(error)
      }
    },
    close: end,
  }
}

/** An error after the answer to `connect` comes as an event, which would otherwise end the process. */
async function connect(client: Client): Promise<void> {
  client.on('error', () => {})
  await client.connect()
}
