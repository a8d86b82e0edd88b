/**
 * The check for the encryption key of the database. With another one a server could read no sealed value, and no other
 * server could read its own.
 */
import { existsSync } from 'node:fs'
import type { Config } from '../../config/config.ts'
import { KEY_CANARY, KEY_CANARY_PLACE } from '../../core/secrets/seals.ts'
import type { Store } from '../../ports/store/store.ts'
import type { Vault } from '../../ports/vault.ts'
import { loadMasterKeys } from '../../system/keys/master-key.ts'
import { createVault } from '../../system/keys/vault.ts'
import { StartError } from '../start-error.ts'

/**
 * Checks a canary before a store is opened. No key is made for a database that has one already.
 * @param sealed null for a database without one
 */
export function refuseOtherKey({ masterKeys }: Config, file: string, sealed: string | null): void {
  if (sealed === null) return
  if (masterKeys.length === 0 && !existsSync(file)) throw otherKey(file)
  check(createVault(...loadMasterKeys(file, masterKeys)), file, sealed)
}

/** Keeps a canary at the first start, and checks it at all others. */
export async function keepCanary(store: Store, vault: Vault, file: string): Promise<void> {
  check(vault, file, await store.seals.keepCanary(vault.seal(KEY_CANARY, KEY_CANARY_PLACE)))
}

function check(vault: Vault, file: string, sealed: string): void {
  try {
    if (vault.open(sealed, KEY_CANARY_PLACE) === KEY_CANARY) return
  } catch (cause) {
    throw otherKey(file, cause)
  }
  throw otherKey(file)
}

function otherKey(file: string, cause?: unknown): StartError {
  const what = 'the database is sealed with another encryption key than this server has; nothing was changed'
  const remedy = `start it with the same RUNYARD_MASTER_KEY as before, or with the encryption-key of the first server as ${file}`
  return new StartError(`${what}; ${remedy}`, cause === undefined ? {} : { cause })
}
