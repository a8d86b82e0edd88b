/**
 * Certificates that a server creates for itself, for a start without an authority: its own, signed by an authority of
 * this server, and those of domains of endpoints, each signed by its own key. Clients trust the authority, which can
 * sign certificates for the names of this server alone (ADR 63).
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { DRAFT, ensureFolder, writeDurably } from '../../disk/durable-file.ts'
import { checkedPair, type KeyPair } from './key-pair.ts'

const DAY_MS = 24 * 60 * 60_000
/** Browsers refuse certificates of servers that are valid for much longer. */
const VALID_MS = 365 * DAY_MS
const AUTHORITY_VALID_MS = 10 * VALID_MS
/** Tolerance for clients whose clocks are late. */
const BACKDATED_MS = DAY_MS
/** Time before its end at which a new one is created. */
export const RENEW_MS = 30 * DAY_MS
const MAX_NAMES = 100

/** Paths of a certificate in a data directory. */
export interface SelfSignedFiles {
  /** Key and certificate, in one file: they change together. */
  readonly pair: string
  /** The certificate that others trust: that of its authority, or itself where it has none. */
  readonly certificate: string
}

/** The files below a data directory. */
export function selfSignedFiles(dataDir: string): SelfSignedFiles {
  const folder = join(dataDir, 'tls')
  return { pair: join(folder, 'self-signed.pem'), certificate: join(folder, 'certificate.pem') }
}

/** The files of the authority. Its certificate is the one that clients trust. */
function authorityFiles(dataDir: string): SelfSignedFiles {
  const { certificate } = selfSignedFiles(dataDir)
  return { pair: join(dataDir, 'tls', 'authority.pem'), certificate }
}

/**
 * The pair in a data directory; created if it is missing, ends within a month, or lacks one of the names. So is the
 * authority that signs it, which is valid for ten years and remains while the names do.
 * @param names DNS names, some with `*` as their first label, and addresses; the first is its subject, and those
 *   after a hundred are left out
 */
export async function ensureSelfSigned(dataDir: string, names: readonly string[], nowMs: number): Promise<KeyPair> {
  const authority = await ensure(authorityFiles(dataDir), namesAbove(names.slice(0, MAX_NAMES)), nowMs, 'authority')
  return ensure(selfSignedFiles(dataDir), names, nowMs, authority)
}

/** As {@link ensureSelfSigned}, in other files and signed by its own key. */
export function ensurePair(files: SelfSignedFiles, names: readonly string[], nowMs: number): Promise<KeyPair> {
  return ensure(files, names, nowMs, null)
}

/** Limit of certificates of single names in memory. */
const MAX_NAMED = 500

/**
 * Certificates of single names below the names of a server. Clients take no `*` right below `localhost`, so an
 * endpoint there, such as `flash.localhost`, has one by its name, with the key of the server.
 */
export class NamedCertificates {
  readonly #dataDir
  readonly #now
  readonly #cached = new Map<string, Promise<KeyPair>>()

  /** @param now the server's time */
  constructor(dataDir: string, now: () => number) {
    this.#dataDir = dataDir
    this.#now = now
  }

  /**
   * The pair for a name; null for one that the certificate of the server has, or that is not below its names.
   * @param current the certificate of the server
   */
  async pairFor(name: string, current: KeyPair): Promise<KeyPair | null> {
    const { names } = current.about
    const isBelow = names.some(other => isIP(other) === 0 && name.endsWith(`.${other.replace(/^\*\./, '')}`))
    if (names.includes(name) || !isBelow || !NAME.test(name)) return null
    const cached = await this.#cached.get(name)
    // The server has another certificate since, or this one ends.
    const isFresh = cached?.key === current.key && cached.about.expiresAtMs - this.#now() > RENEW_MS
    if (isFresh) return cached
    if (this.#cached.size >= MAX_NAMED) this.#cached.clear()
    const pair = this.#issue(name, current)
    this.#cached.set(name, pair)
    pair.catch(() => this.#cached.delete(name))
    return pair
  }

  async #issue(name: string, { key }: KeyPair): Promise<KeyPair> {
    const { pair: authorityFile } = authorityFiles(this.#dataDir)
    const nowMs = this.#now()
    const issuer = readUsable(authorityFiles(this.#dataDir), nowMs)
    if (issuer === null) throw new AppError('unavailable', `${authorityFile} has no authority that can be used`)
    const cert = await issue({ names: [name], publicKey: createPublicKey(key), privateKey: null, nowMs, issuer })
    return checkedPair(cert, key, { certFile: authorityFile, keyFile: authorityFile }, nowMs)
  }
}

/** A name of a host that a certificate can have. */
const NAME = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/

/** Names with which an authority signs for these: a name stands for all names below it. */
function namesAbove(names: readonly string[]): string[] {
  const plain = [...new Set(names.map(name => name.replace(/^\*\./, '')))]
  return plain.filter(name => isIP(name) !== 0 || !plain.some(other => name.endsWith(`.${other}`)))
}

/** The authority that signs a certificate, `authority` for an authority itself, or null for its own key. */
type Issuer = KeyPair | 'authority' | null

async function ensure(
  files: SelfSignedFiles,
  names: readonly string[],
  nowMs: number,
  issuer: Issuer,
): Promise<KeyPair> {
  const certifiedNames = names.slice(0, MAX_NAMES)
  const current = readUsable(files, nowMs)
  const currentNames = new Map(current?.about.names.map(name => [comparable(name), name]))
  const isWhole = certifiedNames.every(name => currentNames.has(comparable(name)))
  // An authority outlives all that it signs.
  const leastMs = RENEW_MS + (issuer === 'authority' ? VALID_MS : 0)
  const isFresh = current !== null && current.about.expiresAtMs - nowMs > leastMs
  if (isFresh && isWhole && isIssuedBy(current, issuer)) {
    writeCertificate(files, trustedPart(current.cert, issuer))
    return current
  }
  // A server that shares the data directory may have other names, and would replace the certificate in turn.
  const both = new Map([
    ...certifiedNames.map(name => [comparable(name), name] as const),
    ...(isWhole ? [] : currentNames),
  ])
  const wanted = both.size > MAX_NAMES ? certifiedNames : [...both.values()]
  // A name that the authority may not sign for would make clients refuse the whole certificate.
  const signed = typeof issuer === 'object' && issuer !== null ? wanted.filter(name => covers(issuer, name)) : wanted
  return createPair(files, signed, nowMs, issuer)
}

/** The pair of the file; null without a usable one. */
function readUsable({ pair }: SelfSignedFiles, nowMs: number): KeyPair | null {
  try {
    const text = readFileSync(pair, 'utf8')
    return checkedPair(text, text, { certFile: pair, keyFile: pair }, nowMs)
  } catch {
    return null
  }
}

async function createPair(
  files: SelfSignedFiles,
  names: readonly string[],
  nowMs: number,
  issuer: Issuer,
): Promise<KeyPair> {
  const { cert, key } = await generate(names, nowMs, issuer)
  ensureFolder(join(files.pair, '..'))
  const text = key + cert
  write(files.pair, text)
  writeCertificate(files, trustedPart(cert, issuer))
  return checkedPair(text, text, { certFile: files.pair, keyFile: files.pair }, nowMs)
}

/** Writes the certificate alone to its file, also when another server created it at the same time. */
function writeCertificate({ certificate }: SelfSignedFiles, cert: string): void {
  if (existsSync(certificate) && readFileSync(certificate, 'utf8') === cert) return
  write(certificate, cert)
  chmodSync(certificate, 0o644)
}

function write(file: string, content: string): void {
  writeDurably(file, content, `${file}.${process.pid}${DRAFT}`)
}

async function generate(
  names: readonly string[],
  nowMs: number,
  issuer: Issuer,
): Promise<{ cert: string; key: string }> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const cert = await issue({ names, publicKey, privateKey, nowMs, issuer })
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}

/** Content of a certificate that is issued now. */
interface Issued {
  readonly names: readonly string[]
  readonly publicKey: KeyObject
  /** The key that signs it, unless an authority does. */
  readonly privateKey: KeyObject | null
  readonly nowMs: number
  readonly issuer: Issuer
}

/** A certificate in PEM. */
async function issue({ names, publicKey, privateKey, nowMs, issuer }: Issued): Promise<string> {
  // Loaded only here: most servers never create one.
  const { certificateDer } = await import('./certificate-der.ts')
  const authority = typeof issuer === 'object' ? issuer : null
  const signer = authority === null ? privateKey! : createPrivateKey(authority.key)
  const der = certificateDer({
    names,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }) as Buffer<ArrayBuffer>,
    serial: randomBytes(16),
    fromMs: nowMs - BACKDATED_MS,
    untilMs: nowMs + (issuer === 'authority' ? AUTHORITY_VALID_MS : VALID_MS),
    issuer:
      authority === null ? (issuer as 'authority' | null) : Uint8Array.from(new X509Certificate(authority.cert).raw),
    sign: bytes => sign('sha256', bytes, signer),
  })
  return new X509Certificate(der).toString()
}

function isIssuedBy({ cert }: KeyPair, issuer: Issuer): boolean {
  const certificate = new X509Certificate(certificatePart(cert))
  const signer = typeof issuer === 'object' && issuer !== null ? new X509Certificate(issuer.cert) : certificate
  return certificate.verify(signer.publicKey)
}

/** True for a name that a certificate has, or that is below one of its names. */
function covers({ about: { names } }: KeyPair, name: string): boolean {
  const plain = comparable(name.replace(/^\*\./, ''))
  return names.some(
    other => comparable(other) === plain || (isIP(name) === 0 && plain.endsWith(`.${comparable(other)}`)),
  )
}

/** The certificate that clients trust. */
function trustedPart(cert: string, issuer: Issuer): string {
  return certificatePart(typeof issuer === 'object' && issuer !== null ? issuer.cert : cert)
}

/** The certificate of a file with a key before it. */
function certificatePart(text: string): string {
  return text.slice(text.indexOf('-----BEGIN CERTIFICATE-----'))
}

/** Addresses have several spellings. */
function comparable(name: string): string {
  return isIP(name) === 6 ? new URL(`http://[${name}]/`).hostname.slice(1, -1) : name.toLowerCase()
}
