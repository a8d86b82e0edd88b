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

/** A pair of keys that a request names. */
export interface S3Pair {
  /** The secret that its signature has to show. */
  readonly secret: string
  /**
   * Its caller, once the signature was checked: this is a use of the key.
   * @throws AppError as {@link Access.authenticate}
   */
  readonly caller: () => Promise<Caller>
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
   * The pair of an access key id.
   * @throws AppError as {@link Access.authenticate}
   */
  async find(accessKeyId: string, readAddress?: ReadAddress): Promise<S3Pair> {
    const { store, vault } = this.#ports
    const id = accessKeyId as KeyId
    const hash = this.#hashes.get(id) ?? (await store.keys.find(id))?.hash
    if (hash === undefined) throw this.refusal(new InvalidKeyError('unknown'), readAddress)
    if (this.#hashes.size >= CACHE_SIZE) this.#hashes.clear()
    this.#hashes.set(id, hash)
    const caller = async () => {
      try {
        return await this.#access.ofKeyHash(hash)
      } catch (error) {
        // The key of an endpoint may have another hash by now.
        this.#hashes.delete(id)
        throw error instanceof InvalidKeyError ? this.refusal(error, readAddress) : error
      }
    }
    return { secret: s3Secret(vault, { id, hash }), caller }
  }

  /** Counts a failed key for its address. @returns the error to answer with, as of {@link FailedKeys.refusal} */
  refusal(error: InvalidKeyError, readAddress: ReadAddress | undefined): Error {
    return readAddress === undefined ? error : this.#access.failedKeys.refusal(readAddress(), error)
  }
}
