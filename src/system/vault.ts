import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { AppError } from '../core/errors.ts'
import type { Vault } from '../ports/vault.ts'

const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Names the form of a sealed text, so that another one can be told apart later. */
const VERSION = 'v1'

/**
 * SHA-256 for hashes and signatures; AES-256-GCM for secrets, as the text `v1.<nonce>.<ciphertext and tag>`, both parts in base64url.
 * @param key 32 bytes, as {@link loadOrCreateKey} gives them
 */
export function createVault(key: Buffer): Vault {
  if (key.length !== KEY_BYTES) throw new AppError('internal', `the encryption key must have ${KEY_BYTES} bytes`)
  return {
    hash: text => createHash('sha256').update(text).digest('hex'),
    equal(a, b) {
      const left = Buffer.from(a)
      const right = Buffer.from(b)
      return left.length === right.length && timingSafeEqual(left, right)
    },
    seal(plain) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, key, nonce)
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return [VERSION, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open: sealed => openSealed(key, sealed),
    sign: (signingKey, text) => createHmac('sha256', Buffer.from(signingKey, 'base64')).update(text).digest('base64'),
  }
}

function openSealed(key: Buffer, text: string): string {
  const [version, nonceText, sealedText, ...rest] = text.split('.')
  const nonce = Buffer.from(nonceText ?? '', 'base64url')
  const sealed = Buffer.from(sealedText ?? '', 'base64url')
  const split = sealed.length - TAG_BYTES
  if (version !== VERSION || rest.length > 0 || nonce.length !== NONCE_BYTES || split < 0) {
    throw new AppError('internal', 'a stored secret does not have the form that this version reads')
  }
  try {
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    decipher.setAuthTag(sealed.subarray(split))
    return Buffer.concat([decipher.update(sealed.subarray(0, split)), decipher.final()]).toString('utf8')
  } catch (cause) {
    throw new AppError('internal', 'a stored secret was changed, or sealed with another encryption key', { cause })
  }
}

/**
 * The key in a file; a new one, readable by the owner only, where there is no file yet.
 * @throws AppError `internal` when the file does not hold a key
 */
export function loadOrCreateKey(file: string): Buffer {
  const key = createKey(file) ?? readFileSync(file)
  if (key.length === KEY_BYTES) return key
  throw new AppError(
    'internal',
    `${file} has ${key.length} bytes and an encryption key has ${KEY_BYTES}; ` +
      'restore it from a backup, or, if no secrets are stored yet, delete it and start again',
  )
}

/** Null when the file is there already, from before or from another process at the same moment. */
function createKey(file: string): Buffer | null {
  let handle: number
  try {
    handle = openSync(file, 'wx', 0o600)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return null
    throw thrown
  }
  try {
    const key = randomBytes(KEY_BYTES)
    writeSync(handle, key)
    fsyncSync(handle)
    return key
  } finally {
    closeSync(handle)
  }
}
