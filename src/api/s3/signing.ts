import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import {
  canonicalRequest,
  chunkTextToSign,
  type RequestTarget,
  type Signature,
  type SignedHead,
  textToSign,
} from '../../core/files/signature.ts'

const EMPTY = sha256('')

/** The key of one day, region and service, with which the parts of a request are signed. */
export class SigningKey {
  readonly #key: Buffer
  readonly #signature

  constructor(secret: string, signature: Signature) {
    this.#signature = signature
    const parts = [...signature.scope, 'aws4_request']
    this.#key = parts.reduce(
      (key, part) => createHmac('sha256', key).update(part).digest(),
      Buffer.from(`AWS4${secret}`),
    )
  }

  /** True if the head of the request has the signature that it names. */
  hasSigned(head: SignedHead, target: RequestTarget): boolean {
    const hash = sha256(canonicalRequest(head, target, this.#signature))
    return isSame(this.#sign(textToSign(this.#signature, hash)), this.#signature.signature)
  }

  /** The signature of a chunk of the body. @param previous that of the chunk before; of the head, for the first */
  chunk(previous: string, hash: string): string {
    return this.#sign(chunkTextToSign('PAYLOAD', this.#signature, previous, [EMPTY, hash]))
  }

  /** The signature of the trailers. @param previous that of the last chunk */
  trailers(previous: string, trailers: string): string {
    return this.#sign(chunkTextToSign('TRAILER', this.#signature, previous, [sha256(trailers)]))
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex')
  }
}

/** Compares in a time that does not depend on where they differ. */
export function isSame(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)]
  return first.length === second.length && timingSafeEqual(first, second)
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
