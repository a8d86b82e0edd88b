/** Accounts beside the operator's. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ask } from '../support/client.ts'
import type { Server } from '../support/server.ts'

/** The same server with a key of another account. */
export interface Tenant extends Server {
  readonly account: string
}

/** Makes an account and a key with all its rights. */
export async function makeTenant(server: Server, name: string): Promise<Tenant> {
  const { json: account } = await ask(server, '/v2/account/accounts', { body: { name } })
  const { json } = await ask(server, '/v2/account/keys', { body: { name: 'main', account: account.id } })
  return { ...server, apiKey: json.key, account: account.id }
}

/** An endpoint without workers. */
export async function idleEndpoint(tenant: Tenant): Promise<string> {
  const body = {
    name: 'idle',
    type: 'QUEUE',
    image: 'nothing:1',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 0 },
  }
  const { json, text } = await ask(tenant, '/v2/serverless', { body })
  if (json?.id === undefined) throw new Error(text)
  return json.id
}

/**
 * Gives an endpoint of the operator to another account, with the workers that it has: only the operator runs folders
 * of this machine, and whose a worker is matters here, not what it runs in.
 */
export function giveTo(tenant: Tenant, endpointId: string): void {
  const database = new DatabaseSync(join(tenant.dataDir, 'runyard.sqlite'), { timeout: 5_000 })
  database.prepare('UPDATE workers SET owner = ? WHERE endpoint_id = ?').run(tenant.account, endpointId)
  database.prepare('UPDATE endpoints SET owner = ? WHERE id = ?').run(tenant.account, endpointId)
  database.close()
}
