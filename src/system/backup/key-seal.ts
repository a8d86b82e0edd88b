/** The keys of a data directory in a backup: sealed with AES-256-GCM under a key that scrypt makes of a passphrase. */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto'
import { AppError } from '../../core/errors.ts'

/** About 0.4 s and 128 MiB for each try. */
const COST = { N: 2 ** 17, r: 8, p: 1 }
const MAX_MEMORY = 256 * 1024 * 1024
const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const TAG_BYTES = 16
const PURPOSE = Buffer.from('runyard backup keys 1')

/** Keys by the names of their files. */
export type KeyFiles = Readonly<Record<string, Buffer>>

/** Seals keys. @returns text */
export async function sealKeys(keys: KeyFiles, passphrase: string): Promise<string> {
  const salt = randomBytes(16)
  const nonce = randomBytes(12)
  const cipher = createCipheriv(CIPHER, await derive(passphrase, salt), nonce)
  cipher.setAAD(PURPOSE)
  const plain = JSON.stringify(
    Object.fromEntries(Object.entries(keys).map(([name, bytes]) => [name, bytes.toString('base64')])),
  )
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return JSON.stringify({
    salt: salt.toString('base64'),
    nonce: nonce.toString('base64'),
    sealed: sealed.toString('base64'),
  })
}

/** Opens the result of {@link sealKeys}. @throws AppError `invalid` if the passphrase is another one */
export async function openKeys(text: string, passphrase: string): Promise<KeyFiles> {
  try {
    const { salt, nonce, sealed } = JSON.parse(text) as Record<string, string>
    const bytes = Buffer.from(sealed ?? '', 'base64')
    const key = await derive(passphrase, Buffer.from(salt ?? '', 'base64'))
    const decipher = createDecipheriv(CIPHER, key, Buffer.from(nonce ?? '', 'base64'), { authTagLength: TAG_BYTES })
    decipher.setAAD(PURPOSE)
    const split = bytes.length - TAG_BYTES
    decipher.setAuthTag(bytes.subarray(split))
    const plain = Buffer.concat([decipher.update(bytes.subarray(0, split)), decipher.final()]).toString('utf8')
    const keys = Object.entries(JSON.parse(plain) as Record<string, string>)
    return Object.fromEntries(keys.map(([name, key]) => [name, Buffer.from(key, 'base64')]))
  } catch (cause) {
    throw new AppError('invalid', 'the keys of the backup cannot be opened: the passphrase is another one', { cause })
  }
}

function derive(passphrase: string, salt: Buffer): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const done = (error: Error | null, key: Buffer) => (error === null ? resolve(key) : reject(error))
  scrypt(passphrase.normalize('NFKC'), salt, KEY_BYTES, { ...COST, maxmem: MAX_MEMORY }, done)
  return promise
}
