import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeDurably } from '../disk/durable-file.ts'
import { relayNow } from './relay-clock.ts'
import type { Sharer } from './shares.ts'

/** Time for which calls of an ended worker are accepted, in milliseconds: as long as its results are passed on. */
const ENDED_MS = 600_000
/** Limit of workers that a relay knows; the oldest are forgotten. */
const MAX_TOKENS = 100_000
/** Minimum interval between writes of the file. */
const WRITE_PAUSE_MS = 1_000

/** One part of a server's list of the tokens of workers, as SHA-256 in hexadecimal digits. */
export interface TokenUpdate {
  /** True if it begins a complete list. Tokens that are not in the complete list are of ended workers. */
  readonly first: boolean
  readonly last: boolean
  /** Hash and account of running workers. */
  readonly live: readonly (readonly [hash: string, owner: string])[]
  /** Hashes of workers that ended. */
  readonly ended: readonly string[]
}

interface CachedToken {
  readonly owner: string
  /** End of the worker, by {@link relayNow}; null while it lives. */
  endedAtMs: number | null
}

/** One entry of the file. */
type Entry = readonly [hash: string, owner: string, endedAtMs: number | null]

/** The tokens of workers that a server has sent; kept in a file for the next relay. */
export class CachedTokens {
  readonly #file
  readonly #tokens = new Map<string, CachedToken>()
  #draft: Set<string> | null = null
  #writing: NodeJS.Timeout | null = null
  #isComplete: boolean

  /** @param file path of the file of tokens */
  constructor(file: string) {
    this.#file = file
    this.#isComplete = this.#read()
  }

  /** True after a server sent a complete list. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** The worker's share for a token; null for an unknown token. */
  find(token: string): Sharer | null {
    const digest = hash('sha256', token)
    const entry = this.#tokens.get(digest)
    if (entry === undefined || isExpired(entry)) return null
    return { token: digest, owner: entry.owner }
  }

  /** Applies one part of a server's list. */
  update({ first, last, live, ended }: TokenUpdate): void {
    if (first) this.#draft = new Set()
    for (const [digest, owner] of live) {
      this.#tokens.delete(digest)
      this.#tokens.set(digest, { owner, endedAtMs: null })
      this.#draft?.add(digest)
    }
    for (const digest of ended) this.#end(digest)
    if (last) {
      for (const digest of this.#tokens.keys()) if (this.#draft?.has(digest) === false) this.#end(digest)
      this.#draft = null
      this.#isComplete = true
    }
    this.#tidy()
    this.#write()
  }

  #end(digest: string): void {
    const entry = this.#tokens.get(digest)
    if (entry !== undefined) entry.endedAtMs ??= relayNow()
  }

  #tidy(): void {
    for (const [digest, entry] of this.#tokens) {
      if (isExpired(entry) || this.#tokens.size > MAX_TOKENS) this.#tokens.delete(digest)
    }
  }

  #read(): boolean {
    try {
      for (const [digest, owner, endedAtMs] of JSON.parse(readFileSync(this.#file, 'utf8')) as Entry[]) {
        // Each relay has its own clock, which counts from its start.
        this.#tokens.set(digest, { owner, endedAtMs: endedAtMs === null ? null : relayNow() })
      }
      return true
    } catch {
      return false
    }
  }

  /** Writes soon, at most once a second: a server sends each worker that it starts. */
  #write(): void {
    if (!this.#isComplete || this.#writing !== null) return
    this.#writing = setTimeout(() => {
      this.#writing = null
      const entries = [...this.#tokens].map(([digest, { owner, endedAtMs }]): Entry => [digest, owner, endedAtMs])
      try {
        writeDurably(this.#file, `${JSON.stringify(entries)}\n`, `${this.#file}.${process.pid}`)
      } catch {
        // The folder was removed, or the disk is full: the next server sends the list again.
      }
    }, WRITE_PAUSE_MS).unref()
  }
}

function isExpired({ endedAtMs }: CachedToken): boolean {
  return endedAtMs !== null && relayNow() - endedAtMs > ENDED_MS
}

/** Limit of tokens in one part. */
const MAX_TOKENS_IN_PART = 2_000

/** A part of a server's list; null where it has the wrong form. */
export function readTokenUpdate(text: string): TokenUpdate | null {
  try {
    const { first, last, live, ended } = JSON.parse(text) as TokenUpdate
    const isSound =
      live.length <= MAX_TOKENS_IN_PART &&
      ended.length <= MAX_TOKENS_IN_PART &&
      live.every(([digest, owner]) => isHash(digest) && typeof owner === 'string') &&
      ended.every(isHash)
    return isSound ? { first: first === true, last: last === true, live, ended } : null
  } catch {
    return null
  }
}

function isHash(digest: unknown): boolean {
  return typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest)
}
