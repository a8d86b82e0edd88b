import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { Crc64Nvme, crc32c } from '../../core/files/checksum.ts'
import { FileError, type FileErrorCode } from '../../core/files/file-error.ts'

/** The checksums that clients send, with their bytes. */
const CHECKSUM_BYTES = { crc32: 4, crc32c: 4, crc64nvme: 8, sha1: 20, sha256: 32 } as const
type ChecksumName = keyof typeof CHECKSUM_BYTES

const PREFIX = 'x-amz-checksum-'

/** A checksum of bytes that come in pieces. */
interface Digest {
  add(data: Uint8Array): void
  value(): Uint8Array
}

/** A checksum that the body has to have. */
interface Expected {
  readonly digest: Digest
  /** In base64; null while a trailer has not named it. */
  value: string | null
  readonly failure: FileErrorCode
}

/** The checksums of one body: those that its request names, and its MD5 where that is asked for. */
export class Checksums {
  readonly #expected = new Map<string, Expected>()
  readonly #md5: Digest | null

  /**
   * @param header gives a header by its name
   * @param headerNames all of them, in lower case
   * @throws FileError `InvalidDigest`, or `InvalidRequest` for an unknown checksum in a trailer
   */
  constructor(header: (name: string) => string | null, headerNames: readonly string[], needsMd5: boolean) {
    const md5 = header('content-md5')
    this.#md5 = needsMd5 || md5 !== null ? hashing('md5') : null
    if (md5 !== null) {
      this.#expected.set('content-md5', { digest: this.#md5!, value: base64(md5, 16), failure: 'BadDigest' })
    }
    for (const name of headerNames) {
      const checksum = checksumNamed(name)
      if (checksum !== null) this.#expect(checksum, base64(header(name)!, CHECKSUM_BYTES[checksum]))
    }
    const trailers = (header('x-amz-trailer') ?? '').split(',').map(name => name.trim().toLowerCase())
    for (const name of trailers.filter(one => one !== '')) {
      const checksum = checksumNamed(name)
      if (checksum === null) throw new FileError('InvalidRequest', `the trailer ${name.slice(0, 100)} is not supported`)
      this.#expect(checksum, null)
    }
  }

  /** Expects a SHA-256 of the whole body, in hexadecimal digits. */
  expectSha256(value: string): void {
    const failure = 'XAmzContentSHA256Mismatch'
    this.#expected.set('payload', {
      digest: hashing('sha256'),
      value: Buffer.from(value, 'hex').toString('base64'),
      failure,
    })
  }

  /** Adds bytes of the body. */
  add(data: Uint8Array): void {
    const digests = new Set([...this.#expected.values()].map(({ digest }) => digest))
    if (this.#md5 !== null) digests.add(this.#md5)
    for (const digest of digests) digest.add(data)
  }

  /** Takes the values of the trailers that the head announced. */
  take(trailers: ReadonlyMap<string, string>): void {
    for (const [name, value] of trailers) {
      const checksum = checksumNamed(name)
      const expected = checksum === null ? undefined : this.#expected.get(checksum)
      if (expected?.value === null) expected.value = base64(value, CHECKSUM_BYTES[checksum!])
    }
  }

  /** @throws FileError for a checksum that the body does not have, or that no trailer named */
  check(): void {
    for (const { digest, value, failure } of this.#expected.values()) {
      if (value === null) throw new FileError('InvalidRequest', 'the body has no trailer with its checksum')
      if (Buffer.from(digest.value()).toString('base64') !== value) throw new FileError(failure)
    }
  }

  /** The MD5 of the bytes so far, hexadecimal. Ends its computation. */
  md5(): string {
    return Buffer.from(this.#md5!.value()).toString('hex')
  }

  #expect(name: ChecksumName, value: string | null): void {
    this.#expected.set(name, { digest: DIGESTS[name](), value, failure: 'BadDigest' })
  }
}

const DIGESTS: Readonly<Record<ChecksumName, () => Digest>> = {
  crc32: () => counting((data, before) => crc32(data, before)),
  crc32c: () => counting(crc32c),
  crc64nvme: () => {
    const crc = new Crc64Nvme()
    return { add: data => crc.add(data), value: () => crc.bytes() }
  },
  sha1: () => hashing('sha1'),
  sha256: () => hashing('sha256'),
}

function checksumNamed(header: string): ChecksumName | null {
  const name = header.startsWith(PREFIX) ? header.slice(PREFIX.length) : ''
  return Object.hasOwn(CHECKSUM_BYTES, name) ? (name as ChecksumName) : null
}

function hashing(name: string): Digest {
  const hash = createHash(name)
  let value: Uint8Array | null = null
  return {
    add: data => void hash.update(data),
    value: () => {
      value ??= hash.digest()
      return value
    },
  }
}

function counting(add: (data: Uint8Array, before: number) => number): Digest {
  let value = 0
  return {
    add: data => {
      value = add(data, value)
    },
    value: () => {
      const bytes = new Uint8Array(4)
      new DataView(bytes.buffer).setUint32(0, value)
      return bytes
    },
  }
}

/** @throws FileError `InvalidDigest` for anything but this many bytes in base64 */
function base64(text: string, bytes: number): string {
  const value = Buffer.from(text, 'base64')
  if (value.length !== bytes || value.toString('base64') !== text) throw new FileError('InvalidDigest')
  return text
}
