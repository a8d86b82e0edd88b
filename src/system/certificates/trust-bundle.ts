/** One file with all authorities that clients of this server trust: a variable that names a file replaces others. */
import { chmodSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { keepDurably } from '../../disk/durable-file.ts'
import { selfSignedFiles } from './self-signed.ts'

/** Path of the file below a data directory. */
export function trustBundleFile(dataDir: string): string {
  return join(dataDir, 'tls', 'trust.pem')
}

/** Writes the file, for everybody to read: the authority of the server, those of Node and those of this machine. */
export function writeTrustBundle(dataDir: string): void {
  const own = readFileSync(selfSignedFiles(dataDir).certificate, 'utf8')
  const all = [own, ...getCACertificates('default'), ...getCACertificates('system')].map(pem => pem.trim())
  const file = trustBundleFile(dataDir)
  keepDurably(file, `${[...new Set(all)].join('\n')}\n`)
  chmodSync(file, 0o644)
}
