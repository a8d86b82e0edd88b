/** Certificates for tests, each signed by its own key. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign, X509Certificate } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { certificateDer } from '../../src/system/certificates/certificate-der.ts'

const HOUR_MS = 60 * 60_000

/** Differences from a certificate of localhost that is valid now. */
export interface CertificateWish {
  readonly names?: readonly string[]
  readonly fromMs?: number
  readonly untilMs?: number
  /** The authority that signs it, with the certificate in PEM; its own key by default. */
  readonly issuer?: { readonly cert: string; readonly privateKey: KeyObject }
}

/** A certificate with its key. */
export interface MadeCertificate {
  readonly cert: string
  readonly key: string
  /** SHA-256 of it. */
  readonly fingerprint: string
  readonly privateKey: KeyObject
}

/** Makes a certificate. */
export function makeCertificate({ names, fromMs, untilMs, issuer }: CertificateWish = {}): MadeCertificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const der = certificateDer({
    names: names ?? ['localhost', 'console.localhost', '*.lb.localhost', '127.0.0.1'],
    publicKey: publicKey.export({ type: 'spki', format: 'der' }),
    serial: randomBytes(16),
    fromMs: fromMs ?? Date.now() - HOUR_MS,
    untilMs: untilMs ?? Date.now() + 90 * 24 * HOUR_MS,
    issuer: issuer === undefined ? null : Uint8Array.from(new X509Certificate(issuer.cert).raw),
    sign: bytes => sign('sha256', bytes, issuer?.privateKey ?? privateKey),
  })
  const certificate = new X509Certificate(der)
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return { cert: certificate.toString(), key, fingerprint: certificate.fingerprint256, privateKey }
}

/** Writes both into a folder. @returns the paths, and the options of a server that has them */
export function writePair(folder: string, { cert, key }: Pick<MadeCertificate, 'cert' | 'key'>) {
  mkdirSync(folder, { recursive: true })
  const certFile = join(folder, 'cert.pem')
  const keyFile = join(folder, 'key.pem')
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  return { certFile, keyFile, args: ['--tls-cert', certFile, '--tls-key', keyFile] }
}

/** Lets the clients of this process trust a certificate, too. */
export function trustHere(pem: string): void {
  setDefaultCACertificates([...getCACertificates('default'), pem])
}
