import type { Account } from '../../core/accounts/account.ts'
import type { GivenLimits } from '../../core/accounts/quotas.ts'
import type { OwnerId } from '../../core/ids.ts'

/** A row of `accounts`. */
export interface AccountRow {
  readonly owner: OwnerId
  readonly name: string
  readonly created_at_ms: number
  readonly delete_running_endpoints: number
  /** A JSON object. */
  readonly limits: string
}

/** A row as an account. */
export function toAccount({ owner: id, name, created_at_ms, delete_running_endpoints, limits }: AccountRow): Account {
  const deleteRunningEndpoints = delete_running_endpoints === 1
  return { id, name, createdAtMs: created_at_ms, deleteRunningEndpoints, limits: JSON.parse(limits) as GivenLimits }
}
