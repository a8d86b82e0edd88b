import { createReadStream } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DRAFT, ensureFolder, streamDurably } from '../disk/durable-file.ts'
import { RelayShares, type Sharer } from './shares.ts'
import type { SpooledBody } from './spool.ts'

/** Room for all bodies that are set aside; one account gets half of it. */
const ROOM_BYTES = 1_073_741_824
/** Least size that a file counts with, so that at most about a thousand files fit. */
const LEAST_BYTES = 1_048_576
/** Maximum size of the first line. */
const HEAD_BYTES = 4_096

/** The owner of a body: the first line of its file. The body follows. */
export interface SetAsideHead {
  readonly owner: string
  /** Path and query of the call. */
  readonly url: string
  /** Length of the body. */
  readonly bytes: number
  /** Unix time in ms. */
  readonly atMs: number
}

/** Keeps bodies that end servers in files for the operator. */
export class SetAside {
  readonly #folder
  #last: Promise<unknown> = Promise.resolve()
  #made = 0

  constructor(folder: string) {
    this.#folder = folder
  }

  /**
   * Keeps a body on stable storage until a person removes its file.
   * @param url path and query of its call
   * @returns the name of the file; null without room for it, or after an error of the disk
   */
  keep(body: SpooledBody, { owner }: Sharer, url: string): Promise<string | null> {
    const fileName = this.#last.then(async () => {
      try {
        return await this.#keep(body, owner, url.slice(0, HEAD_BYTES / 2))
      } catch {
        return null
      }
    })
    this.#last = fileName
    return fileName
  }

  async #keep(body: SpooledBody, owner: string, url: string): Promise<string | null> {
    ensureFolder(this.#folder)
    if (!(await this.#room()).take(accountSharer(owner), countedSize(body.bytes))) return null
    const atMs = Date.now()
    this.#made += 1
    const name = `body-${atMs}-${process.pid}-${this.#made}`
    const head: SetAsideHead = { owner, url, bytes: body.bytes, atMs }
    await streamDurably(join(this.#folder, name), filePieces(head, body))
    return name
  }

  /** Free room: the operator may have removed files. Bodies of a relay that ended are removed here. */
  async #room(): Promise<RelayShares> {
    const shares = new RelayShares(ROOM_BYTES)
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name)
      if (name.endsWith(DRAFT)) await rm(path, { force: true })
      else shares.add(accountSharer(await readOwner(path)), countedSize((await stat(path)).size))
    }
    return shares
  }
}

async function* filePieces(head: SetAsideHead, body: SpooledBody): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(head)}\n`)
  const content = body.read()
  if (Buffer.isBuffer(content)) yield content
  else yield* content
}

/** The account of a file; empty for an unknown one. */
async function readOwner(path: string): Promise<string> {
  let head = ''
  for await (const piece of createReadStream(path, { end: HEAD_BYTES - 1, encoding: 'utf8' })) head += piece
  try {
    const { owner } = JSON.parse(head.slice(0, head.indexOf('\n'))) as SetAsideHead
    return String(owner)
  } catch {
    return ''
  }
}

/** A sharer for an account alone: it may have several workers whose bodies end servers. */
function accountSharer(owner: string): Sharer {
  return { token: owner, owner }
}

function countedSize(bytes: number): number {
  return Math.max(bytes, LEAST_BYTES)
}
