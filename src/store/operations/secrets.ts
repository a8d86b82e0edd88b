import type { OwnerId, SecretId } from '../../core/ids.ts'
import type { Secret } from '../../core/secret.ts'
import type { SecretStore } from '../../ports/store.ts'
import { type SecretRow, toSecret } from '../rows/secrets.ts'
import * as sql from '../sql/secrets.ts'
import { type OperationsOf, query, queryOne, read, type Steps, write } from './operation.ts'

/** Secrets with their sealed values. */
export const secrets = {
  insert: write(function* (secret: Secret, sealed: string): Steps<boolean> {
    const { id, owner, name, description, createdAtMs } = secret
    return (yield* query(sql.insertSecret, [id, owner, name, description, createdAtMs, sealed])).length > 0
  }),

  list: read(function* (owner: OwnerId): Steps<Secret[]> {
    return (yield* query<SecretRow>(sql.listSecrets, [owner])).map(toSecret)
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
