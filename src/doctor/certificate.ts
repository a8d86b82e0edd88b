/** The certificate of the settings, as a server would find it. */
import { existsSync } from 'node:fs'
import { hasTls, type TlsSettings } from '../config/addresses.ts'
import { toAppError } from '../core/errors.ts'
import type { CertificateState } from '../core/observing/diagnosis.ts'
import { readPair } from '../system/certificates/key-pair.ts'
import { selfSignedFiles } from '../system/certificates/self-signed.ts'

/** @returns null for plain HTTP, and where the server makes one at its first start */
export async function inspectCertificate(dataDir: string, tls: TlsSettings): Promise<CertificateState | null> {
  if (!hasTls(tls)) return null
  const { certFile, keyFile } = tls
  const { pair } = selfSignedFiles(dataDir)
  if (tls.selfSigned && !existsSync(pair)) return null
  try {
    const files = { certFile: certFile ?? pair, keyFile: keyFile ?? pair }
    return (await readPair(files, Date.now())).about
  } catch (error) {
    return { problem: toAppError(error).message }
  }
}
