import type { OwnerId, SecretId } from '../../../core/ids.ts'
import type { Slice } from '../../../core/pages.ts'
import type { Secret } from '../../../core/secrets/secret.ts'
import type { SecretChanges, SecretStore } from '../../../ports/store/management-store.ts'
import * as sql from '../../tables/secrets.ts'
import { type SecretRow, toSecret } from '../../tables/secrets.ts'
import { ofSlice } from '../../tables/slices.ts'
import { type OperationsOf, query, queryOne, read, type Steps, write } from '../operation.ts'

/** Secrets with their sealed values. */
export const secrets = {
  insert: write(function* (secret: Secret, sealed: string): Steps<boolean> {
    const { id, owner, name, description, createdAtMs, valueUpdatedAtMs } = secret
    const params = [id, owner, name, description, createdAtMs, valueUpdatedAtMs, sealed]
    return (yield* query(sql.insertSecret, params)).length > 0
  }),

  update: write(function* (owner: OwnerId, id: SecretId, changes: SecretChanges): Steps<Secret | null> {
    const { description, value } = changes
    const params = [description === undefined ? 0 : 1, description ?? null, value?.sealed ?? null, value?.atMs ?? null]
    const row = yield* queryOne<SecretRow>(sql.updateSecret, [owner, id, ...params])
    return row === null ? null : toSecret(row)
  }),

  find: read(function* (owner: OwnerId, id: SecretId): Steps<Secret | null> {
    const row = yield* queryOne<SecretRow>(sql.findSecret, [owner, id])
    return row === null ? null : toSecret(row)
  }),

  findByName: read(function* (owner: OwnerId, name: string): Steps<Secret | null> {
    const row = yield* queryOne<SecretRow>(sql.findSecretByName, [owner, name])
    return row === null ? null : toSecret(row)
  }),

  list: read(function* (owner: OwnerId, slice?: Slice): Steps<Secret[]> {
    return (yield* query<SecretRow>(sql.listSecrets, [owner, ...ofSlice(slice)])).map(toSecret)
  }),

  sealedValues: read(function* (owner: OwnerId, names: readonly string[]): Steps<Map<string, string>> {
    const values = new Map<string, string>()
    for (const name of names) {
      const row = yield* queryOne<{ sealed: string }>(sql.sealedValue, [owner, name])
      if (row !== null) values.set(name, row.sealed)
    }
    return values
  }),

  remove: write(function* (owner: OwnerId, id: SecretId): Steps<boolean> {
    return (yield* query(sql.deleteSecret, [owner, id])).length > 0
  }),
} satisfies OperationsOf<SecretStore>
