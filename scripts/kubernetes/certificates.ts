/** The certificates, keys and kubeconfigs of a cluster of the tests. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Makes the authority of a cluster in a folder.
 * @returns a function that signs a certificate for `<name>.key` there, as `<name>.crt`
 */
export function createAuthority(folder: string) {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const openssl = (...words: string[]) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...newKey, '-days', '30', '-subj', '/CN=runyard tests', '-keyout', 'ca.key', '-out', 'ca.crt')
  return (name: string, subject: string, names: readonly string[], usage: 'serverAuth' | 'clientAuth') => {
    openssl('req', ...newKey, '-subj', subject, '-keyout', `${name}.key`, '-out', `${name}.csr`)
    writeFileSync(join(folder, `${name}.ext`), `subjectAltName=${names.join(',')}\nextendedKeyUsage=${usage}\n`)
    const authority = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial']
    openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      ...authority,
      '-days',
      '30',
      '-extfile',
      `${name}.ext`,
      '-out',
      `${name}.crt`,
    )
  }
}

/** Creates the key pair for the tokens of service accounts. */
export function createAccountKeys(folder: string): void {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  writeFileSync(join(folder, 'accounts.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 })
  writeFileSync(join(folder, 'accounts.pub'), publicKey.export({ type: 'spki', format: 'pem' }))
}

/** An identity that may call the API server. */
export interface Caller {
  readonly name: string
  readonly groups: readonly string[]
}

/**
 * Gives each caller a token, in the table that the API server reads, and a kubeconfig at `<file>.kubeconfig`. Its
 * format is JSON, which is also YAML.
 * @returns the tokens by file
 */
export function createCallers(
  folder: string,
  server: string,
  callers: Readonly<Record<string, Caller>>,
): Record<string, string> {
  const authority = readFileSync(join(folder, 'keys', 'ca.crt')).toString('base64')
  const tokens: Record<string, string> = {}
  let table = ''
  for (const [file, { name, groups }] of Object.entries(callers)) {
    const token = randomBytes(24).toString('hex')
    tokens[file] = token
    table += `${token},${name},${name},"${groups.join(',')}"\n`
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'tests',
      contexts: [{ name: 'tests', context: { cluster: 'tests', user: file, namespace: 'default' } }],
      clusters: [{ name: 'tests', cluster: { server, 'certificate-authority-data': authority } }],
      users: [{ name: file, user: { token } }],
    }
    writeFileSync(join(folder, `${file}.kubeconfig`), `${JSON.stringify(config, null, 2)}\n`, { mode: 0o600 })
  }
  writeFileSync(join(folder, 'keys', 'tokens.csv'), table, { mode: 0o600 })
  return tokens
}
