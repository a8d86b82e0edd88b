import { type Body, LARGE_BODY_BYTES, textOf } from '../core/bodies/body-readings.ts'
import { AppError } from '../core/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Spill, SpilledBody } from '../ports/spill.ts'
import type { LimitedBody } from '../services/workers/worker-calls.ts'
import { FairRoom, type RoomClaim, type RoomHolder } from './fair-room.ts'

/** How far a body is kept, and how far it is read at all. */
export interface BodyLimit {
  readonly keptBytes: number
  readonly readBytes: number
}

/** What a body of somebody with a key may hold in any case; a server full of these is still a small one. */
const FREE_BYTES = 65_536
/** All bodies of callers without a key together, and the part of the whole room that they have at most. */
const ANONYMOUS = { bytes: 16 * 1024 * 1024, part: 8, staleMs: 2_000 } as const
/** How long a whole body waits on disk for room in memory; the Python SDK waits 600 s for an answer. */
const ROOM_WAIT_MS = 120_000

/** What a {@link BodyRoom} needs. */
export interface BodyRoomOptions {
  /** Most bytes in memory. */
  readonly maxBytes: number
  readonly clock: Clock
  /** Takes bodies for which there is no room in memory; null for a room that refuses them. */
  readonly spill: Spill | null
}

/** Reads bodies of one account, or of callers without a key. */
export interface BodyReader {
  /**
   * Reads a body up to a limit and keeps its room until `use` is over.
   * @throws AppError `rate_limited` when there is no room, `invalid` when the connection ended before the body did
   */
  limited<Value>(request: Request, limit: BodyLimit, use: (body: LimitedBody) => Promise<Value>): Promise<Value>
  /**
   * Reads a body that must fit, and keeps its room until `use` is over. A large one comes as its bytes (core/readings.ts).
   * @throws AppError as `limited`, and `too_large`, at once when the length is announced
   */
  body<Value>(request: Request, maxBytes: number, use: (body: Body) => Promise<Value>): Promise<Value>
}

/**
 * How many bytes of request bodies may be held at once, all requests together (docs/adr/0032). Small bodies of those with a key
 * always find room; large ones share it fairly between accounts. Callers without a key have a small room of their own.
 */
export class BodyRoom {
  readonly #clock: Clock
  readonly #spill: Spill | null
  readonly #memory: FairRoom
  readonly #disk: FairRoom
  readonly #anonymous: FairRoom

  constructor({ maxBytes, clock, spill }: BodyRoomOptions) {
    this.#clock = clock
    this.#spill = spill
    const now = () => clock.monotonic()
    this.#memory = new FairRoom({ maxBytes, now })
    this.#disk = new FairRoom({ maxBytes: spill?.maxBytes ?? 0, now })
    const bytes = Math.min(ANONYMOUS.bytes, Math.floor(maxBytes / ANONYMOUS.part))
    this.#anonymous = new FairRoom({ maxBytes: bytes, now, staleMs: ANONYMOUS.staleMs })
  }

  /**
   * @param account whose key or token came with the request; null when none did
   * @param part tells one sender of the account from its others, such as a worker
   */
  of(account: string | null, part = ''): BodyReader {
    const reader: BodyReader = {
      limited: (request, limit, use) => this.#limited({ account, part }, request, limit, use),
      async body(request, maxBytes, use) {
        const announced = Number(request.headers.get('content-length') ?? 0)
        if (announced > maxBytes) throw tooLarge(`${announced} bytes`, maxBytes)
        return reader.limited(request, { keptBytes: maxBytes, readBytes: maxBytes }, async ({ content }) => {
          if (content === null) throw tooLarge(`more than ${maxBytes} bytes`, maxBytes)
          return use(content)
        })
      },
    }
    return reader
  }

  async #limited<Value>(
    { account, part }: { readonly account: string | null; readonly part: string },
    request: Request,
    limit: BodyLimit,
    use: (body: LimitedBody) => Promise<Value>,
  ): Promise<Value> {
    const rooms =
      account === null
        ? { memory: this.#anonymous, disk: this.#disk, spill: null, clock: this.#clock, freeBytes: 0 }
        : { memory: this.#memory, disk: this.#disk, spill: this.#spill, clock: this.#clock, freeBytes: FREE_BYTES }
    const held = new HeldBody({ account: account ?? '', part }, rooms)
    try {
      return await use(await readLimited(request, limit, held))
    } finally {
      held.leave()
    }
  }
}

interface Rooms {
  readonly memory: FairRoom
  readonly disk: FairRoom
  readonly spill: Spill | null
  readonly clock: Clock
  readonly freeBytes: number
}

/** One body that comes in: in memory, or in a file once there is no room for it. Another body may get its room meanwhile. */
class HeldBody {
  readonly #holder: RoomHolder
  readonly #rooms: Rooms
  #pieces: Uint8Array[] = []
  #bytes = 0
  #memory: RoomClaim | null = null
  #disk: RoomClaim | null = null
  #file: SpilledBody | null = null
  /** The move to a file that goes on, after which the rest is appended. */
  #moving: Promise<void> | null = null
  #lost = false

  constructor(holder: RoomHolder, rooms: Rooms) {
    this.#holder = holder
    this.#rooms = rooms
  }

  /** Whether there was no room for it. Then nothing of it is held. */
  get lost(): boolean {
    return this.#lost
  }

  /** Takes the next piece, if there is room for it. Null when that is done, which it is at once while it fits into memory. */
  add(piece: Uint8Array): Promise<void> | null {
    if (this.#moving !== null || this.#file !== null) return this.#addToFile(piece)
    this.#pieces.push(piece)
    this.#bytes += piece.byteLength
    const over = Math.max(0, this.#bytes - this.#rooms.freeBytes) - (this.#memory?.bytes ?? 0)
    if (over <= 0) return null
    this.#memory ??= this.#rooms.memory.enter(this.#holder, () => this.#yield())
    if (!this.#rooms.memory.grow(this.#memory, over)) this.#yield()
    return this.#moving
  }

  /** The whole body; waits for room in memory when it lies in a file. @throws AppError `rate_limited` */
  content(): Body | Promise<Body> {
    if (this.#moving !== null || this.#file !== null) return this.#contentOfFile()
    if (this.#lost) throw noRoom()
    if (this.#memory !== null) this.#rooms.memory.fix(this.#memory)
    return decode(this.#pieces, this.#bytes)
  }

  /** Gives all room back. */
  leave(): void {
    this.#lost = true
    this.#pieces = []
    if (this.#memory !== null) this.#rooms.memory.leave(this.#memory)
    if (this.#disk !== null) this.#rooms.disk.leave(this.#disk)
    const dropFile = () => void this.#file?.drop()
    if (this.#moving === null) dropFile()
    else void this.#moving.then(dropFile)
  }

  /** Its room in memory is another one's now. */
  #yield(): void {
    if (this.#memory !== null) this.#rooms.memory.leave(this.#memory)
    this.#memory = null
    const { spill } = this.#rooms
    if (spill === null) this.leave()
    else this.#moving ??= this.#move(spill)
  }

  async #move(spill: Spill): Promise<void> {
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    this.#disk = this.#rooms.disk.enter(this.#holder, () => this.leave())
    try {
      this.#file = await spill.create()
      for (const piece of pieces) {
        if (!this.#lost) await this.#append(piece)
      }
    } catch {
      this.leave()
    } finally {
      this.#moving = null
      if (this.#lost) await this.#file?.drop()
    }
  }

  async #addToFile(piece: Uint8Array): Promise<void> {
    if (this.#moving !== null) await this.#moving
    if (!this.#lost) await this.#append(piece)
  }

  async #contentOfFile(): Promise<Body> {
    if (this.#moving !== null) await this.#moving
    if (this.#lost) throw noRoom()
    this.#rooms.disk.fix(this.#disk!)
    await this.#whenRoom()
    return decode([await this.#file!.read()], this.#bytes)
  }

  async #append(piece: Uint8Array): Promise<void> {
    const hasRoom = this.#rooms.disk.grow(this.#disk!, piece.byteLength)
    if (!hasRoom) {
      this.leave()
      return
    }
    this.#bytes += piece.byteLength
    try {
      await this.#file!.append(piece)
    } catch {
      // The disk is full, or another body got the room.
      this.leave()
    }
  }

  async #whenRoom(): Promise<void> {
    const { memory, clock } = this.#rooms
    const claim = memory.enter(this.#holder, () => {})
    memory.fix(claim)
    this.#memory = claim
    let stop = () => {}
    const late = new Promise<'late'>(resolve => {
      stop = clock.after(ROOM_WAIT_MS, () => resolve('late'))
    })
    const outcome = await Promise.race([memory.whenRoom(claim, this.#bytes), late])
    stop()
    if (outcome === 'late') throw noRoom()
  }
}

/** Reads a body, counting while reading: what is over the limit is never held. `content` is null when it was. */
async function readLimited(request: Request, limit: BodyLimit, held: HeldBody): Promise<LimitedBody> {
  const body = request.body as ReadableStream<Uint8Array> | null
  if (body === null) return { content: '', bytes: 0, ended: true }
  let bytes = 0
  try {
    for await (const piece of body.values({ preventCancel: true })) {
      bytes += piece.byteLength
      if (bytes > limit.readBytes) break
      // What finds no room is counted all the same: whether it is too large is the better answer.
      if (held.lost) continue
      if (bytes > limit.keptBytes) {
        held.leave()
        continue
      }
      const added = held.add(piece)
      if (added !== null) await added
    }
  } catch (error) {
    throw new AppError('invalid', 'the connection ended before the request body did', { cause: error })
  }
  if (bytes > limit.readBytes) {
    // A rest that nobody reads would end the connection under the next request, which may be another job's result.
    body.pipeTo(new WritableStream()).catch(() => {})
    return { content: null, bytes, ended: false }
  }
  if (bytes > limit.keptBytes) return { content: null, bytes, ended: true }
  const content = held.content()
  return { content: content instanceof Promise ? await content : content, bytes, ended: true }
}

function noRoom(): AppError {
  return new AppError('rate_limited', 'too many large requests are coming in', { retryAfterSeconds: 5 })
}

function tooLarge(size: string, maxBytes: number): AppError {
  return new AppError('too_large', `the request body is too large: ${size}, the limit is ${maxBytes} bytes`)
}

/** Large ones stay as they came: putting them together and decoding them takes as long as much else does together. */
function decode(pieces: readonly Uint8Array[], bytes: number): Body {
  return bytes >= LARGE_BODY_BYTES ? pieces : textOf(pieces)
}
