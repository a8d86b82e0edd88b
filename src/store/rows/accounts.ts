import type { Account } from '../../core/account.ts'
import type { OwnerId } from '../../core/ids.ts'

/** A row of `accounts`. */
export interface AccountRow {
  readonly owner: OwnerId
  readonly name: string
  readonly created_at_ms: number
  readonly delete_running_endpoints: number
}

/** A row as an account. */
export function toAccount({ owner: id, name, created_at_ms, delete_running_endpoints }: AccountRow): Account {
  return { id, name, createdAtMs: created_at_ms, deleteRunningEndpoints: delete_running_endpoints === 1 }
}
