/**
 * Self-signed certificates of the domains of endpoints: one for each, so that a new domain
 * changes no other certificate.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeyPair } from './key-pair.ts'
import { ensurePair, RENEW_MS, type SelfSignedFiles } from './self-signed.ts'

/** Limit of pairs in memory; others are read from their files again. */
const MAX_PAIRS = 500

/**
 * Creates the certificate of a domain when a client first asks for it, and keeps it in the data directory while an
 * endpoint has the domain.
 */
export class DomainCertificates {
  readonly #parts
  readonly #pairs = new Map<string, Promise<KeyPair>>()

  constructor(parts: {
    readonly dataDir: string
    /** True for a domain of an endpoint at this moment. */
    readonly isDomain: (name: string) => boolean
    /** The server's time. */
    readonly now: () => number
  }) {
    this.#parts = parts
  }

  /**
   * The pair for a name; null for a name that is no endpoint's domain. @throws when it can be neither read nor
   * created
   */
  async pairFor(name: string): Promise<KeyPair | null> {
    const { isDomain, now } = this.#parts
    if (!isDomain(name)) {
      this.#pairs.delete(name)
      return null
    }
    const current = this.#pairs.get(name) ?? this.#ensure(name)
    const pair = await current
    if (pair.about.expiresAtMs - now() > RENEW_MS) return pair
    // Another call may have renewed it.
    return this.#pairs.get(name) === current ? this.#ensure(name) : this.pairFor(name)
  }

  #ensure(name: string): Promise<KeyPair> {
    if (this.#pairs.size >= MAX_PAIRS) this.#pairs.clear()
    const { dataDir, now } = this.#parts
    const pair = ensurePair(domainFiles(dataDir, name), [name], now()).finally(() => this.#removeOthers())
    this.#pairs.set(name, pair)
    pair.catch(() => this.#pairs.delete(name))
    return pair
  }

  /** Removes the files of domains without an endpoint, so that the number of files is limited. */
  async #removeOthers(): Promise<void> {
    const folder = join(this.#parts.dataDir, FOLDER)
    const files = await readdir(folder).catch(() => [])
    const unusedFiles = files.filter(file => ENDINGS.some(end => file.endsWith(end) && !this.#isKept(file, end)))
    await Promise.all(unusedFiles.map(file => rm(join(folder, file), { force: true }).catch(() => {})))
  }

  #isKept(file: string, end: string): boolean {
    return this.#parts.isDomain(file.slice(0, -end.length))
  }
}

const FOLDER = join('tls', 'domains')
const ENDINGS = ['.pem', '.crt']

/**
 * The files of the certificate of a domain below a data directory: the pair in `.pem`, and the certificate
 * that clients trust in `.crt`.
 */
export function domainFiles(dataDir: string, domain: string): SelfSignedFiles {
  const folder = join(dataDir, FOLDER)
  return { pair: join(folder, `${domain}.pem`), certificate: join(folder, `${domain}.crt`) }
}
