/** The vault of a server, and the sealing of values that an earlier start left open. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { AuditDetail } from '../../core/audit/entry.ts'
import { keepDurably } from '../../disk/durable-file.ts'
import { layered } from '../../ports/store/operations.ts'
import type { Store } from '../../ports/store/store.ts'
import type { Vault } from '../../ports/vault.ts'
import { AuditLog } from '../../services/audit/audit-log.ts'
import { PayloadSeals } from '../../services/secrets/payload-seals.ts'
import { encryptPlain, reEncryptAll } from '../../services/secrets/re-encryption.ts'
import { sealing } from '../../services/secrets/sealed-store.ts'
import { systemClock } from '../../system/clock.ts'
import { loadMasterKeys } from '../../system/keys/master-key.ts'
import { boundVault, createVault } from '../../system/keys/vault.ts'
import type { Log } from '../../system/observing/log.ts'
import { keepCanary } from './key-canary.ts'
import { keepDatabaseNote, keyFile } from './store.ts'

/** The vault of a server, and its store with the payloads that are sealed in it. */
export async function openSeals(store: Store, config: Config, log: Log): Promise<{ store: Store; vault: Vault }> {
  await keepDatabaseNote(config)
  const plain = openVault(config, log)
  await keepCanary(store, plain, keyFile(config))
  const vault = await withBoundSeals(plain, store, config, log)
  return { store: await withSealedPayloads(store, vault, config, log), vault }
}

function openVault(config: Config, log: Log): Vault {
  const keys = loadMasterKeys(keyFile(config), config.masterKeys)
  if (keys.length > 1) log.warn('several encryption keys are in use; runyard master-key rotate leaves only the first')
  return createVault(...keys)
}

/** Seals texts of older versions again, bound to their rows; the data directory notes that this is done. */
async function withBoundSeals(vault: Vault, store: Store, { dataDir }: Config, log: Log): Promise<Vault> {
  const note = join(dataDir, 'seals-bound')
  if (!existsSync(note)) {
    const { resealed, unreadable: left, named } = await reEncryptAll({ store, vault })
    if (resealed > 0) {
      log.info({ resealed }, 'seals.bound')
      await noted(store, 'bindSeals', { resealed })
    }
    if (left > 0) {
      log.warn({ unreadable: left, named }, 'sealed values that no key opens are left as they are')
      return vault
    }
    keepDurably(note, 'v3\n')
  }
  return boundVault(vault)
}

/**
 * With `--seal-payloads`, payloads that stay for long are sealed before anything else happens. The data directory
 * notes whether some may be sealed, so that a server that has never sealed any does not search for them; a database
 * elsewhere may have been another server's.
 */
async function withSealedPayloads(store: Store, vault: Vault, config: Config, log: Log): Promise<Store> {
  const note = join(config.dataDir, 'payloads-sealed')
  const previous = existsSync(note) ? readFileSync(note, 'utf8').trim() : null
  if (config.sealPayloads && previous !== 'all') {
    keepDurably(note, 'some\n')
    const count = await encryptPlain({ store, vault })
    if (count > 0) {
      log.info({ count }, 'payloads.sealed')
      await noted(store, 'sealPayloads', { count })
    }
    keepDurably(note, 'all\n')
  }
  if (!config.sealPayloads && previous === 'all') keepDurably(note, 'some\n')
  const mayHaveSome = config.sealPayloads || previous !== null || config.databaseUrl !== null
  return mayHaveSome ? layered(store, sealing(new PayloadSeals(vault, config.sealPayloads))) : store
}

function noted(store: Store, operation: string, detail: AuditDetail): Promise<void> {
  return new AuditLog({ store, clock: systemClock }).ofServer(operation, null, detail)
}
