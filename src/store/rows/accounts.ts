import type { Account } from '../../core/account.ts'
import type { OwnerId } from '../../core/ids.ts'

/** A row of `accounts`. */
export interface AccountRow {
  readonly owner: OwnerId
  readonly name: string
  readonly created_at_ms: number
}

/** A row as an account. */
export function toAccount({ owner: id, name, created_at_ms: createdAtMs }: AccountRow): Account {
  return { id, name, createdAtMs }
}
