/** A certificate and its private key in files, and the test that a server can use them. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import { AppError } from '../../core/errors.ts'
import { errorText } from '../../disk/access-problem.ts'

/** A certificate with its chain and its private key, in PEM, and its facts for people. */
export interface KeyPair {
  readonly cert: string
  readonly key: string
  readonly about: CertificateFacts
}

/** Facts about a certificate. */
export interface CertificateFacts {
  /** Its names, on one line. */
  readonly subject: string
  readonly names: readonly string[]
  readonly expiresAtMs: number
  /** SHA-256, as `openssl x509 -fingerprint` has it. */
  readonly fingerprint: string
}

/** Paths of both; one file may have both. */
export interface PairFiles {
  readonly certFile: string
  readonly keyFile: string
}

/** Limit of a file: a chain of many certificates has some 20 KB. */
const MAX_BYTES = 1024 * 1024

/**
 * Reads both files.
 * @throws AppError `invalid` with a sentence that names the file and the reason
 */
export async function readPair(files: PairFiles, nowMs: number): Promise<KeyPair> {
  const [cert, key] = await Promise.all([textIn(files.certFile), textIn(files.keyFile)])
  return checkedPair(cert, key, files, nowMs)
}

/** @throws AppError as {@link readPair} */
export function checkedPair(cert: string, key: string, { certFile, keyFile }: PairFiles, nowMs: number): KeyPair {
  const certificate = certificateIn(cert, certFile)
  const privateKey = privateKeyIn(key, keyFile)
  if (!certificate.checkPrivateKey(privateKey))
    throw refused(`the key in ${keyFile} is not that of the first certificate in ${certFile}`)
  const { validFromDate, validToDate } = certificate
  if (validToDate.getTime() <= nowMs)
    throw refused(`the certificate in ${certFile} expired at ${validToDate.toISOString()}`)
  if (validFromDate.getTime() > nowMs)
    throw refused(`the certificate in ${certFile} is not valid before ${validFromDate.toISOString()}`)
  try {
    // OpenSSL refuses the same as clients do: short keys, and outdated signatures.
    createSecureContext({ cert, key })
  } catch (error) {
    throw refused(`the certificate in ${certFile} cannot be used: ${(error as Error).message}`)
  }
  return { cert, key, about: certificateFacts(certificate) }
}

/** Facts about a certificate in PEM, the first one of a chain. */
function certificateFacts({ subject, subjectAltName, validToDate, fingerprint256 }: X509Certificate): CertificateFacts {
  const names = (subjectAltName ?? '')
    .split(', ')
    .flatMap(entry => /^(?:DNS|IP Address):(.+)$/.exec(entry)?.[1] ?? [])
    .map(name => name.replaceAll('"', ''))
  // A certificate may have no subject beside its names.
  const named = (subject ?? '').replaceAll('\n', ', ')
  return {
    subject: named === '' ? names.join(', ') : named,
    names,
    expiresAtMs: validToDate.getTime(),
    fingerprint: fingerprint256,
  }
}

async function textIn(file: string): Promise<string> {
  try {
    const bytes = await readFile(file)
    if (bytes.length <= MAX_BYTES) return bytes.toString('utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const denied = code === 'EACCES' || code === 'EPERM'
    const remedy = denied ? 'let the user of the server read it' : 'correct --tls-cert or --tls-key'
    throw refused(`cannot read ${file}: ${errorText(error)}; ${remedy}`)
  }
  throw refused(`${file} is too large to be a certificate or a key`)
}

function certificateIn(text: string, file: string): X509Certificate {
  try {
    if (text.includes('-----BEGIN ')) return new X509Certificate(text)
  } catch (error) {
    throw refused(`${file} has no certificate that can be read: ${(error as Error).message}`)
  }
  throw refused(`${file} has no certificate in PEM`)
}

function privateKeyIn(text: string, file: string) {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text))
    throw refused(`the key in ${file} has a passphrase; write one without: openssl pkey -in ${file} -out <file>`)
  try {
    return createPrivateKey(text)
  } catch {
    // The message of the error may quote the file.
    throw refused(`${file} has no private key in PEM that can be read`)
  }
}

function refused(message: string): AppError {
  return new AppError('invalid', message)
}
