/**
 * A certificate that a server creates for itself, for a start without an authority. It can sign no other: a client
 * that trusts it trusts this server alone.
 */
import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { DRAFT, ensureFolder, writeDurably } from '../../disk/durable-file.ts'
import { checkedPair, type KeyPair } from './key-pair.ts'

const DAY_MS = 24 * 60 * 60_000
/** Browsers refuse certificates that are valid for much longer. */
const VALID_MS = 365 * DAY_MS
/** Tolerance for clients whose clocks are late. */
const BACKDATED_MS = DAY_MS
/** Time before its end at which a new one is created. */
export const RENEW_MS = 30 * DAY_MS
const MAX_NAMES = 100

/** Paths of the certificate of a server in its data directory. */
export interface SelfSignedFiles {
  /** Key and certificate, in one file: they change together. */
  readonly pair: string
  /** The certificate alone, for others to trust. */
  readonly certificate: string
}

/** The files below a data directory. */
export function selfSignedFiles(dataDir: string): SelfSignedFiles {
  const folder = join(dataDir, 'tls')
  return { pair: join(folder, 'self-signed.pem'), certificate: join(folder, 'certificate.pem') }
}

/**
 * The pair in a data directory; created if it is missing, ends within a month, or lacks one of the names.
 * @param names DNS names, some with `*` as their first label, and addresses; the first is its subject, and those
 *   after a hundred are left out
 */
export function ensureSelfSigned(dataDir: string, names: readonly string[], nowMs: number): Promise<KeyPair> {
  return ensurePair(selfSignedFiles(dataDir), names, nowMs)
}

/** As {@link ensureSelfSigned}, in other files. */
export async function ensurePair(files: SelfSignedFiles, names: readonly string[], nowMs: number): Promise<KeyPair> {
  const certifiedNames = names.slice(0, MAX_NAMES)
  const current = readUsable(files, nowMs)
  const currentNames = new Map(current?.about.names.map(name => [comparable(name), name]))
  const isWhole = certifiedNames.every(name => currentNames.has(comparable(name)))
  if (current !== null && isWhole && current.about.expiresAtMs - nowMs > RENEW_MS) {
    writeCertificate(files, certificatePart(current.cert))
    return current
  }
  // A server that shares the data directory may have other names, and would replace the certificate in turn.
  const both = new Map([
    ...certifiedNames.map(name => [comparable(name), name] as const),
    ...(isWhole ? [] : currentNames),
  ])
  return createPair(files, both.size > MAX_NAMES ? certifiedNames : [...both.values()], nowMs)
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

async function createPair(files: SelfSignedFiles, names: readonly string[], nowMs: number): Promise<KeyPair> {
  const { cert, key } = await generate(names, nowMs)
  ensureFolder(join(files.pair, '..'))
  const text = key + cert
  write(files.pair, text)
  writeCertificate(files, cert)
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

async function generate(names: readonly string[], nowMs: number): Promise<{ cert: string; key: string }> {
  // Loaded only here: most servers never create one.
  const { certificateDer } = await import('./certificate-der.ts')
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const der = certificateDer({
    names,
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    serial: randomBytes(16),
    fromMs: nowMs - BACKDATED_MS,
    untilMs: nowMs + VALID_MS,
    sign: bytes => sign('sha256', bytes, privateKey),
  })
  return {
    cert: new X509Certificate(der).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** The certificate of a file with a key before it. */
function certificatePart(text: string): string {
  return text.slice(text.indexOf('-----BEGIN CERTIFICATE-----'))
}

/** Addresses have several spellings. */
function comparable(name: string): string {
  return isIP(name) === 6 ? new URL(`http://[${name}]/`).hostname.slice(1, -1) : name.toLowerCase()
}
