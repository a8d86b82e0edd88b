import { Client } from 'pg'
import { connectionConfig } from './postgres-connection.ts'
import { errorFromPostgres } from './postgres-errors.ts'

/** A connection that carries nothing, and whose loss shows that PostgreSQL was away. */
export interface PostgresWatch {
  close(): Promise<void>
}

/**
 * Opens a connection of its own and watches it.
 * @param lost called when the connection is gone: once, and not after `close`
 * @throws AppError `unavailable` when PostgreSQL cannot be reached
 */
export async function watchPostgres(url: string, lost: () => void): Promise<PostgresWatch> {
  const client = new Client({ ...connectionConfig(url), application_name: 'runyard watch' })
  let isOver = false
  const end = () => {
    isOver = true
    return client.end().catch(() => {})
  }
  const lose = () => {
    if (isOver) return
    void end()
    lost()
  }
  // An error after the answer to `connect` comes as an event, which would otherwise end the process.
  client.on('error', () => {})
  try {
    await client.connect()
  } catch (error) {
    void end()
    throw errorFromPostgres(error)
  }
  client.on('end', lose)
  client.on('error', lose)
  return { close: end }
}
