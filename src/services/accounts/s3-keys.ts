import type { ApiKey, Caller } from '../../core/accounts/permission.ts'
import type { KeyId } from '../../core/ids.ts'
import type { Ports } from '../../ports/ports.ts'
import type { Vault } from '../../ports/vault.ts'
import type { Access } from './access.ts'
import { InvalidKeyError, type ReadAddress } from './failed-keys.ts'

const CACHE_SIZE = 1_000

/** The secret access key of an API key for S3, whose access key id is the id of the key. It is stored nowhere. */
export function s3Secret(vault: Vault, { id, hash }: Pick<ApiKey, 'id' | 'hash'>): string {
  return vault.derive({ kind: 's3', row: `${id}/${hash}` })
}

/** A caller of the S3 door, and the secret that its signature has to show. */
export interface S3Caller {
  readonly caller: Caller
  readonly secret: string
}

/** The pairs of keys for S3: each API key has one, with its rights and its end. */
export class S3Keys {
  readonly #ports
  readonly #access
  /** Hashes of keys by their ids: the cache of {@link Access} has them by hash. */
  readonly #hashes = new Map<string, string>()

  constructor(ports: Ports, access: Access) {
    this.#ports = ports
    this.#access = access
  }

  /**
   * The caller of an access key id; what it says of itself has to be checked with the secret.
   * @throws AppError as {@link Access.authenticate}
   */
  async find(accessKeyId: string, from?: ReadAddress): Promise<S3Caller> {
    const { store, vault } = this.#ports
    const id = accessKeyId as KeyId
    const hash = this.#hashes.get(id) ?? (await store.keys.find(id))?.hash
    if (hash === undefined) throw this.refusal(new InvalidKeyError('unknown'), from)
    if (this.#hashes.size >= CACHE_SIZE) this.#hashes.clear()
    this.#hashes.set(id, hash)
    try {
      return { caller: await this.#access.ofKeyHash(hash), secret: s3Secret(vault, { id, hash }) }
    } catch (error) {
      // The key of an endpoint may have another hash by now.
      this.#hashes.delete(id)
      throw error instanceof InvalidKeyError ? this.refusal(error, from) : error
    }
  }

  /** Counts a failed key for its address. @returns the error to answer with, as of {@link FailedKeys.refusal} */
  refusal(error: InvalidKeyError, from: ReadAddress | undefined): Error {
    return from === undefined ? error : this.#access.failedKeys.refusal(from(), error)
  }
}
