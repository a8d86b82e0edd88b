import type { Account, AccountChanges } from '../../../core/accounts/account.ts'
import type { OwnerId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { AccountStore } from '../../../ports/store/management-store.ts'
import * as sql from '../../tables/accounts.ts'
import { type AccountRow, toAccount } from '../../tables/accounts.ts'
import { ofSlice } from '../../tables/slices.ts'
import { type OperationsOf, perform, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Accounts. */
export const accounts = {
  insert: write(function* ({ id, name, createdAtMs, deleteRunningEndpoints, limits }: Account): Steps<boolean> {
    const params = [id, name, createdAtMs, deleteRunningEndpoints ? 1 : 0, JSON.stringify(limits)]
    return (yield* query(sql.insertAccount, params)).length > 0
  }),

  find: read(function* (id: OwnerId): Steps<Account | null> {
    const row = yield* queryOne<AccountRow>(sql.findAccount, [id])
    return row === null ? null : toAccount(row)
  }),

  update: write(function* (id: OwnerId, changes: AccountChanges): Steps<Account | null> {
    const { name = null, deleteRunningEndpoints: flag, limits } = changes
    const given = limits === undefined ? null : JSON.stringify(limits)
    const row = yield* queryOne<AccountRow>(sql.updateAccount, [
      id,
      name,
      flag === undefined ? null : Number(flag),
      given,
    ])
    return row === null ? null : toAccount(row)
  }),

  list: read(function* (slice?: Slice): Steps<Account[]> {
    return (yield* query<AccountRow>(sql.listAccounts, ofSlice(slice))).map(toAccount)
  }),

  sshKeys: read(function* (id: OwnerId): Steps<string[]> {
    const row = yield* queryOne<{ ssh_keys: string }>(sql.findSshKeys, [id])
    return row === null ? [] : (JSON.parse(row.ssh_keys) as string[])
  }),

  replaceSshKeys: write(function* (id: OwnerId, keys: readonly string[], nowMs: number): Steps<void> {
    yield* perform(sql.replaceSshKeys, [id, JSON.stringify(keys), nowMs])
  }),
} satisfies OperationsOf<AccountStore>
