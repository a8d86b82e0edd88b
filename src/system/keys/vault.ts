import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hash,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { AppError } from '../../core/errors.ts'
import { gatherSlices } from '../../core/json/text-slices.ts'
import type { SealPlace, Vault } from '../../ports/vault.ts'

const CIPHER = 'aes-256-gcm'
/** Bytes of an encryption key. */
export const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Name of the form of a sealed text. The first form, `v1`, had no key id; up to the second, `v2`, texts were not
 * bound to their place.
 */
const VERSION = 'v3'

interface Key {
  readonly id: string
  readonly bytes: Buffer
}

/**
 * SHA-256 for hashes and signatures; AES-256-GCM for secrets, as the text `v3.<key>.<nonce>.<ciphertext and tag>`:
 * the id of the key, which is the beginning of its hash, and both parts in base64url.
 * @param current 32 bytes; seals all new texts
 * @param others older keys, with which texts can still be opened
 */
export function createVault(current: Buffer, ...others: Buffer[]): Vault {
  const keys = [current, ...others].map(bytes => {
    if (bytes.length !== KEY_BYTES) throw new AppError('internal', `an encryption key must have ${KEY_BYTES} bytes`)
    return { id: keyId(bytes), bytes }
  })
  const first = keys[0]!
  const open = (text: string, place: SealPlace) => openSealed(keys, text, place)
  return {
    hash: text => hash('sha256', text),
    equal(a, b) {
      const left = Buffer.from(a)
      const right = Buffer.from(b)
      return left.length === right.length && timingSafeEqual(left, right)
    },
    seal: (plain, place) => seal(first, plain, place),
    open,
    reseal: (text, place) =>
      text.startsWith(`${VERSION}.${first.id}.`) ? null : seal(first, open(text, place), place),
    derive: place => Buffer.from(hkdfSync('sha256', first.bytes, '', placeBytes(place), 32)).toString('base64url'),
    async sign(signingKey, texts) {
      const hmac = createHmac('sha256', Buffer.from(signingKey, 'base64'))
      let first = true
      for (const slice of gatherSlices(texts)) {
        if (!first) await nextTurn()
        hmac.update(slice)
        first = false
      }
      return hmac.digest('base64')
    },
  }
}

/** Id of a key in the texts that it sealed, which reveals nothing of the key. */
export function keyId(key: Buffer): string {
  return createHash('sha256').update('runyard key id').update(key).digest('hex').slice(0, 12)
}

function seal({ id, bytes }: Key, plain: string, place: SealPlace): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, bytes, nonce)
  cipher.setAAD(placeBytes(place))
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return [VERSION, id, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
}

function openSealed(keys: readonly Key[], text: string, place: SealPlace): string {
  const parts = text.split('.')
  const isBound = parts[0] === VERSION
  const named = (isBound || parts[0] === 'v2') && parts.length === 4 ? parts[1] : null
  if (named === null && !(parts[0] === 'v1' && parts.length === 3)) throw unknownForm()
  const nonce = Buffer.from(parts.at(-2)!, 'base64url')
  const sealed = Buffer.from(parts.at(-1)!, 'base64url')
  if (nonce.length !== NONCE_BYTES || sealed.length < TAG_BYTES) throw unknownForm()
  let cause: unknown
  for (const { id, bytes } of keys) {
    if (named !== null && id !== named) continue
    try {
      return decipher(bytes, nonce, sealed, isBound ? place : null)
    } catch (error) {
      cause = error
    }
  }
  throw new AppError(
    'internal',
    'a stored secret was changed, moved from another row, or sealed with another encryption key',
    {
      cause,
    },
  )
}

function decipher(key: Buffer, nonce: Buffer, sealed: Buffer, place: SealPlace | null): string {
  const split = sealed.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  if (place !== null) decipher.setAAD(placeBytes(place))
  decipher.setAuthTag(sealed.subarray(split))
  return Buffer.concat([decipher.update(sealed.subarray(0, split)), decipher.final()]).toString('utf8')
}

function placeBytes({ kind, row }: SealPlace): Buffer {
  return Buffer.from(`runyard\0${kind}\0${row}`)
}

/**
 * A vault that opens no text of an older form, after all were sealed again: an attacker who can write to the
 * database could put one anywhere.
 */
export function boundVault(vault: Vault): Vault {
  return {
    ...vault,
    open(text, place) {
      // Texts of jobs may come from drafts of batches, which have a short life.
      if (place.kind === 'jobs' || text.startsWith(`${VERSION}.`)) return vault.open(text, place)
      throw new AppError(
        'internal',
        'a stored secret is in an older form, as in an old backup; stop the server and run runyard master-key rotate',
      )
    },
  }
}

function unknownForm(): AppError {
  return new AppError('internal', 'a stored secret does not have the form that this version reads')
}
