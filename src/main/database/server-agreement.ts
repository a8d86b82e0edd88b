/** Keys and settings that servers of one database have in common, so that clients notice no takeover. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { hasTls } from '../../config/addresses.ts'
import type { Config } from '../../config/config.ts'
import { MAY_DIFFER } from '../../config/storage.ts'
import { isSameSecret } from '../../crypto/same-secret.ts'
import type { ServerAgreement } from '../../ports/leader.ts'
import { readApiKey } from '../../system/keys/api-key.ts'
import { loadMasterKeys } from '../../system/keys/master-key.ts'
import { keyId } from '../../system/keys/vault.ts'

/** The keys and settings of this server, as it compares them with those of the active one. */
export class OwnAgreement {
  readonly #config

  constructor(config: Config) {
    this.#config = config
  }

  /** Facts that this server publishes while it is active; null while a key is still to be made. */
  published(): ServerAgreement | null {
    const [apiKey] = this.#apiKeys()
    const [sealsWith] = this.#encryptionKeys()
    if (apiKey === undefined || sealsWith === undefined) return null
    return { apiKey: hashText(apiKey), sealsWith, settings: agreedSettings(this.#config) }
  }

  /**
   * The reason against a takeover by this server from one with these keys: credentials of clients, or sealed values,
   * would be lost.
   * @returns the rest of a sentence after that server's name, with the remedy; null if it may
   */
  problemWith({ apiKey, sealsWith }: ServerAgreement): string | null {
    const keys = this.#apiKeys()
    // A server without a key reports that itself.
    if (keys.length > 0 && !keys.some(key => isSameSecret(hashText(key), apiKey))) return OTHER_API_KEY
    return this.#encryptionKeys().includes(sealsWith) ? null : OTHER_ENCRYPTION_KEY
  }

  /** The settings that differ from those of the active server, by their options. */
  differsFrom({ settings: theirs }: ServerAgreement): readonly string[] {
    const ownSettings = agreedSettings(this.#config)
    const names = new Set([...Object.keys(ownSettings), ...Object.keys(theirs)])
    return [...names].filter(name => ownSettings[name] !== theirs[name]).sort()
  }

  /** Those that are valid while this server is active, the present one first. */
  #apiKeys(): string[] {
    const { dataDir, apiKey, previousApiKey } = this.#config
    return [readApiKey(join(dataDir, 'api-key'), apiKey), previousApiKey].filter(key => key !== null)
  }

  /** Ids of the encryption keys, the sealing one first. Makes no key. */
  #encryptionKeys(): string[] {
    const { dataDir, masterKeys } = this.#config
    const file = join(dataDir, 'encryption-key')
    return masterKeys.length === 0 && !existsSync(file) ? [] : loadMasterKeys(file, masterKeys).map(keyId)
  }
}

const OTHER_API_KEY =
  'with another API key, which a takeover by this server would end for all clients, so it cannot stand by: start it with the same RUNYARD_API_KEY, ' +
  'or with the api-key of that server in its data directory; to change the key, give the present one in RUNYARD_PREVIOUS_API_KEY, too'
const OTHER_ENCRYPTION_KEY =
  'and seals with an encryption key that this server does not have, so it cannot stand by: start it with the same RUNYARD_MASTER_KEY; ' +
  'while the key is changed, give all servers both, with a comma between them'

/** Of each setting that clients notice and that is not its default. */
function agreedSettings(config: Config): Record<string, string> {
  const { nonDefaults, tls, metricsKey, prices } = config
  const shared = Object.entries(nonDefaults).filter(([option]) => !MAY_DIFFER.has(option))
  const hashed = shared.map(([option, texts]) => [option, hashText(JSON.stringify(texts))] as const)
  return {
    ...Object.fromEntries(hashed),
    // The paths of their files may differ.
    ...(hasTls(tls) && { HTTPS: 'on' }),
    ...(prices !== null && { '--prices': hashText(JSON.stringify(prices)) }),
    ...(metricsKey !== null && { RUNYARD_METRICS_KEY: hashText(metricsKey) }),
  }
}

function hashText(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
