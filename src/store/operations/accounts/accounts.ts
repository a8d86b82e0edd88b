import type { Account, AccountChanges } from '../../../core/accounts/account.ts'
import type { GivenLimits } from '../../../core/accounts/quotas.ts'
import type { OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { AccountStore } from '../../../ports/store/management-store.ts'
import { sliceParams } from '../../tables/statement.ts'
import { type PortOperations, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** The columns of an account; see accounts.ts. */
const ACCOUNT_COLUMNS = 'owner, name, created_at_ms, delete_running_endpoints, limits'

/** A new account; no row if it exists. */
export const insertAccount = `
  INSERT INTO accounts (${ACCOUNT_COLUMNS}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner) DO NOTHING RETURNING owner`

/** $1 account. */
export const findAccount = `SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE owner = $1`

/** $1 account, $2 name, $3 the flag and $4 limits as a JSON text, each NULL to keep the present one. */
export const updateAccount = `
  UPDATE accounts SET name = COALESCE($2, name), delete_running_endpoints = COALESCE($3, delete_running_endpoints),
    limits = COALESCE($4, limits)
  WHERE owner = $1
  RETURNING ${ACCOUNT_COLUMNS}`

/** $1 account. */
export const findSshKeys = 'SELECT ssh_keys FROM accounts WHERE owner = $1'

/** $1 account, $2 keys as a JSON text, $3 now. */
export const replaceSshKeys = `
  INSERT INTO accounts (owner, name, created_at_ms, ssh_keys) VALUES ($1, $1, $3, $2)
  ON CONFLICT (owner) DO UPDATE SET ssh_keys = excluded.ssh_keys`

/** $1 and $2 the end of the previous page, $3 limit. */
export const listAccounts = `
  SELECT ${ACCOUNT_COLUMNS} FROM accounts WHERE (created_at_ms, owner) > ($1, $2)
  ORDER BY created_at_ms, owner LIMIT $3`

/** A row of `accounts`. */
interface AccountRow {
  readonly owner: OwnerId
  readonly name: string
  readonly created_at_ms: number
  readonly delete_running_endpoints: number
  /** A JSON object. */
  readonly limits: string
}

/** A row as an account. */
function accountFromRow({ owner: id, name, created_at_ms, delete_running_endpoints, limits }: AccountRow): Account {
  const deleteRunningEndpoints = delete_running_endpoints === 1
  return { id, name, createdAtMs: created_at_ms, deleteRunningEndpoints, limits: JSON.parse(limits) as GivenLimits }
}

/** Accounts. */
export const accounts = {
  insert: write(function* ({ id, name, createdAtMs, deleteRunningEndpoints, limits }: Account): Steps<boolean> {
    const params = [id, name, createdAtMs, deleteRunningEndpoints ? 1 : 0, JSON.stringify(limits)]
    return (yield* query(insertAccount, params)).length > 0
  }),

  find: read(function* (id: OwnerId): Steps<Account | null> {
    const row = yield* queryOne<AccountRow>(findAccount, [id])
    return row === null ? null : accountFromRow(row)
  }),

  update: write(function* (id: OwnerId, changes: AccountChanges): Steps<Account | null> {
    const { name = null, deleteRunningEndpoints: flag, limits } = changes
    const limitsText = limits === undefined ? null : JSON.stringify(limits)
    const row = yield* queryOne<AccountRow>(updateAccount, [
      id,
      name,
      flag === undefined ? null : Number(flag),
      limitsText,
    ])
    return row === null ? null : accountFromRow(row)
  }),

  list: read(function* (slice?: Slice): Steps<Account[]> {
    return (yield* query<AccountRow>(listAccounts, sliceParams(slice))).map(accountFromRow)
  }),

  sshKeys: read(function* (id: OwnerId): Steps<string[]> {
    const row = yield* queryOne<{ ssh_keys: string }>(findSshKeys, [id])
    return row === null ? [] : (JSON.parse(row.ssh_keys) as string[])
  }),

  replaceSshKeys: write(function* (id: OwnerId, keys: readonly string[], nowMs: number): Steps<void> {
    yield* perform(replaceSshKeys, [id, JSON.stringify(keys), nowMs])
  }),
} satisfies PortOperations<AccountStore>
