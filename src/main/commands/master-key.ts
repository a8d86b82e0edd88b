/** The rotation of the encryption key of a server that is stopped. */
import type { Config } from '../../config/config.ts'
import { SERVER_ORIGIN } from '../../core/audit/entry.ts'
import { AuditLog } from '../../services/audit/audit-log.ts'
import { type ReEncryption, reEncryptAll } from '../../services/secrets/re-encryption.ts'
import { systemClock } from '../../system/clock.ts'
import { beginRotation, endRotation, loadMasterKeys } from '../../system/keys/master-key.ts'
import { createVault } from '../../system/keys/vault.ts'
import { acquire, keyFile, type Lead, lead, openStore, requireMatchingDatabase } from '../database/store.ts'
import { StartError, toStartError } from '../start-error.ts'

/** The result of a rotation, and the present key. */
interface Rotated extends ReEncryption {
  /** Null when the key comes from RUNYARD_MASTER_KEY. */
  readonly keyFile: string | null
}

/**
 * Replaces the encryption key of a server that is stopped: all that is sealed is sealed with a new key, in small
 * steps, and then the old one is dropped. When it ends before that, both keys stay and the next call goes on. A key
 * that comes from RUNYARD_MASTER_KEY is replaced there; this then seals everything with the first of its keys.
 * @param report called with the progress
 * @throws StartError when the server runs, the store cannot be opened, or a sealed text cannot be opened
 */
export async function rotateMasterKey(config: Config, report: (so: ReEncryption) => void): Promise<Rotated> {
  await requireMatchingDatabase(config).catch((error: unknown) => Promise.reject(toStartError(error)))
  const lock = acquire(config, false)
  let led: Lead | null = null
  try {
    led = await lead(config)
    const file = keyFile(config)
    const given = config.masterKeys.length > 0
    const { store } = await openStore(config, led?.term.fence ?? null, () => {})
    try {
      const keys = given ? loadMasterKeys(file, config.masterKeys) : beginRotation(file)
      const audit = new AuditLog({ store, clock: systemClock })
      const audited = {
        surface: 'server',
        operation: 'rotateEncryptionKey',
        origin: SERVER_ORIGIN,
        object: null,
      } as const
      const rotate = () => reEncryptAll({ store, vault: createVault(...keys) }, report)
      const done = await audit.change(audited, rotate, {
        detailFromResult: ({ resealed, unreadable }) => ({ resealed, unreadable }),
      })
      if (done.unreadable > 0) throw new StartError(unreadable(done))
      if (!given) endRotation(file)
      return { ...done, keyFile: given ? null : file }
    } finally {
      await store.close()
    }
  } catch (error) {
    throw toStartError(error)
  } finally {
    await led?.close()
    lock.release()
  }
}

function unreadable({ unreadable: count, named }: ReEncryption): string {
  const which = `${named.join(', ')}${count > named.length ? ', ...' : ''}`
  return `${count} sealed values cannot be opened with any known key (${which}); delete them or set them again, then rotate again. All keys are kept`
}
