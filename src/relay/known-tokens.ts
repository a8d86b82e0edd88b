import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { writeDurably } from '../disk/durable-file.ts'
import type { Sharer } from './shares.ts'

/** How long calls of a worker that has ended are taken: as long as a result is passed on whose worker has gone. */
const ENDED_MS = 600_000
/** Workers of which a relay knows at most; the oldest are forgotten. */
const MAX_TOKENS = 100_000
/** Between two writes of the file. */
const WRITE_PAUSE_MS = 1_000

/** One part of what a server tells of the tokens of workers: SHA-256 in hexadecimal digits. */
export interface TokenNews {
  /** The first part of all there are: what is not told by the last part is no worker's any more. */
  readonly first: boolean
  readonly last: boolean
  /** Hash and account of workers that live. */
  readonly live: readonly (readonly [hash: string, owner: string])[]
  /** Hashes of workers that have ended. */
  readonly ended: readonly string[]
}

interface Known {
  readonly owner: string
  /** When the worker ended, in Unix time; null while it lives. */
  endedAtMs: number | null
}

/** A line of the file. */
type Entry = readonly [hash: string, owner: string, endedAtMs: number | null]

/** The tokens of workers, as far as a server has told them; kept in a file for the next relay. */
export class KnownTokens {
  readonly #file: string
  readonly #known = new Map<string, Known>()
  #draft: Set<string> | null = null
  #writing: NodeJS.Timeout | null = null
  #told: boolean

  /** @param file where they are kept */
  constructor(file: string) {
    this.#file = file
    this.#told = this.#read()
  }

  /** Whether a server has told which workers there are. */
  get told(): boolean {
    return this.#told
  }

  /** Whose token this is; null where it is unknown. */
  find(token: string): Sharer | null {
    const digest = hash('sha256', token)
    const found = this.#known.get(digest)
    if (found === undefined || isOver(found)) return null
    return { token: digest, owner: found.owner }
  }

  /** Takes in what a server tells. */
  tell({ first, last, live, ended }: TokenNews): void {
    if (first) this.#draft = new Set()
    for (const [digest, owner] of live) {
      this.#known.delete(digest)
      this.#known.set(digest, { owner, endedAtMs: null })
      this.#draft?.add(digest)
    }
    for (const digest of ended) this.#end(digest)
    if (last) {
      for (const digest of this.#known.keys()) if (this.#draft?.has(digest) === false) this.#end(digest)
      this.#draft = null
      this.#told = true
    }
    this.#tidy()
    this.#write()
  }

  #end(digest: string): void {
    const known = this.#known.get(digest)
    if (known !== undefined) known.endedAtMs ??= Date.now()
  }

  #tidy(): void {
    for (const [digest, known] of this.#known) {
      if (isOver(known) || this.#known.size > MAX_TOKENS) this.#known.delete(digest)
    }
  }

  #read(): boolean {
    try {
      for (const [digest, owner, endedAtMs] of JSON.parse(readFileSync(this.#file, 'utf8')) as Entry[]) {
        this.#known.set(digest, { owner, endedAtMs })
      }
      return true
    } catch {
      return false
    }
  }

  /** Soon, and not more often than once a second: a server tells of each worker that it starts. */
  #write(): void {
    if (!this.#told || this.#writing !== null) return
    this.#writing = setTimeout(() => {
      this.#writing = null
      const entries = [...this.#known].map(([digest, { owner, endedAtMs }]): Entry => [digest, owner, endedAtMs])
      try {
        writeDurably(this.#file, `${JSON.stringify(entries)}\n`, `${this.#file}.${process.pid}`)
      } catch {
        // The folder is gone, or the disk is full: the next server tells it again.
      }
    }, WRITE_PAUSE_MS).unref()
  }
}

function isOver({ endedAtMs }: Known): boolean {
  return endedAtMs !== null && Date.now() - endedAtMs > ENDED_MS
}

const MAX_TOLD = 2_000

/** What a server told; null where it makes no sense. */
export function tokenNewsIn(text: string): TokenNews | null {
  try {
    const { first, last, live, ended } = JSON.parse(text) as TokenNews
    const isSound =
      live.length <= MAX_TOLD &&
      ended.length <= MAX_TOLD &&
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
