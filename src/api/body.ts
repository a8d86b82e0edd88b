import type { Context } from 'hono'
import { type Body, decodeBody, LARGE_BODY_BYTES, notUtf8 } from '../core/bodies/body-readings.ts'
import { AppError } from '../core/errors.ts'
import { fairShare } from '../core/fair-share.ts'
import type { Clock } from '../ports/clock.ts'
import type { Spill, SpilledBody } from '../ports/spill.ts'
import type { PassingBody } from '../services/jobs/large-texts.ts'
import type { LimitedBody } from '../services/workers/worker-calls.ts'
import { FairRoom, type RoomClaim, type RoomHolder } from './fair-room.ts'
import type { IncomingBody, SurfaceEnv } from './surface.ts'

/** Limits of a body: the stored bytes, and the read bytes. */
export interface BodyLimit {
  readonly keptBytes: number
  readonly readBytes: number
  /** Limit of a body that is passed on as it arrives if it is larger than `keptBytes`; without it none is. */
  readonly passedBytes?: number
}

/** Bytes of memory that a body of a caller with a key always gets. They do not count towards the shared room. */
const FREE_BYTES = 65_536
/**
 * Limits for all bodies of callers without a key together: bytes, and the part of the whole room
 * that they leave to others.
 */
const ANONYMOUS = { bytes: 16 * 1024 * 1024, left: 7 / 8, staleMs: 2_000 } as const
/**
 * Bytes of memory that a body counts as which is passed on as it arrives: its present part, and what the collector has
 * yet to free. The smallest room has one such body.
 */
const PASSED_BYTES = 16 * 1024 * 1024
/**
 * The slowest pace of such a body, which holds room until its end: time at any pace, and bytes a second after it. Only
 * the time counts in which the server waits for the client.
 */
const PASSED_PACE = { graceMs: 60_000, bytesPerSecond: 65_536 } as const
/** Bytes of such a body that are read in one turn of the event loop. */
const PASSED_PART_BYTES = 256 * 1024
/** Time that a complete body waits on disk for room in memory, in ms. The Python SDK waits 600 s for a response. */
const ROOM_WAIT_MS = 120_000

/** A request with a body to read, and the bindings of its surface. */
export interface BodyRequest {
  readonly request: Request
  readonly env: Pick<SurfaceEnv, 'body' | 'untimed'>
}

/** The request of a call of Hono, whose bindings are those of the surface. */
export function bodyRequest({ req, env }: Context<{ Bindings: SurfaceEnv }>): BodyRequest {
  return { request: req.raw, env }
}

/** Reads bodies of one account, or of callers without a key. */
export interface BodyReader {
  /**
   * Reads a body up to a limit and holds its room until `use` settles. A small body that is not UTF-8 is passed as
   * bytes too.
   * @throws AppError `rate_limited` if no room is free, `invalid` if the connection ended before the body did
   */
  limited<Value>(request: BodyRequest, limit: BodyLimit, use: (body: LimitedBody) => Promise<Value>): Promise<Value>
  /**
   * Reads a body that must fit, and holds its room until `use` settles. A large body is passed as bytes
   * (core/bodies/body-readings.ts).
   * @throws AppError as `limited`, `too_large` (at once if the Content-Length is too large), `unsupported_media` for
   * a `Content-Encoding`, and `invalid` for a small body that is not UTF-8
   */
  body<Value>(request: BodyRequest, maxBytes: number, use: (body: Body) => Promise<Value>): Promise<Value>
  /** Reads a body as {@link body}; a small one that is not UTF-8 is passed as bytes, too. */
  bytes<Value>(request: BodyRequest, maxBytes: number, use: (body: Body) => Promise<Value>): Promise<Value>
  /**
   * Reads a body as {@link body}; one that is larger than what is held passes as it arrives.
   * @param limit the most bytes of a body that is held, and of one that passes
   */
  passing<Value>(
    request: BodyRequest,
    limit: { readonly keptBytes: number; readonly passedBytes: number },
    use: (body: Body | PassingBody) => Promise<Value>,
  ): Promise<Value>
}

/** True for a body that passes as it arrives. */
export function isPassing(body: Body | PassingBody): body is PassingBody {
  return typeof body !== 'string' && 'announcedBytes' in body
}

/**
 * Bounds the bytes of request bodies held at once by all requests together (docs/adr/0032). Small bodies of
 * callers with a key always fit; accounts share the room for large bodies fairly. Callers without a key have
 * a small room of their own.
 */
export class BodyRoom {
  readonly #clock
  readonly #spill
  readonly #memory
  readonly #disk
  readonly #anonymous

  constructor({
    maxBytes,
    clock,
    spill,
  }: {
    /** Maximum bytes in memory. */
    readonly maxBytes: number
    readonly clock: Clock
    /** Stores bodies that do not fit in memory. Null: such bodies are refused. */
    readonly spill: Spill | null
  }) {
    this.#clock = clock
    this.#spill = spill
    const now = () => clock.monotonic()
    this.#memory = new FairRoom({ maxBytes, now })
    this.#disk = new FairRoom({ maxBytes: spill?.maxBytes ?? 0, now })
    const bytes = Math.min(ANONYMOUS.bytes, fairShare(maxBytes, ANONYMOUS.left))
    this.#anonymous = new FairRoom({ maxBytes: bytes, now, staleMs: ANONYMOUS.staleMs })
  }

  /**
   * @param account owner of the key or token of the request; null without one
   * @param part one sender of the account, such as a worker
   */
  of(account: string | null, part = ''): BodyReader {
    const reader: BodyReader = {
      limited: (request, limit, use) => this.#limited({ account, part }, request, limit, use),
      async bytes(call, maxBytes, use) {
        const announced = Number(call.request.headers.get('content-length') ?? 0)
        if (announced > maxBytes) throw tooLarge(`${announced} bytes`, maxBytes)
        refuseCoded(call)
        return reader.limited(call, { keptBytes: maxBytes, readBytes: maxBytes }, async ({ content }) => {
          if (content === null) throw tooLarge(`more than ${maxBytes} bytes`, maxBytes)
          return use(content)
        })
      },
      body: (call, maxBytes, use) =>
        reader.passing(call, { keptBytes: maxBytes, passedBytes: maxBytes }, body => use(body as Body)),
      async passing(call, { keptBytes, passedBytes }, use) {
        const announced = Number(call.request.headers.get('content-length') ?? 0)
        if (announced > passedBytes) throw tooLarge(`${announced} bytes`, passedBytes)
        refuseCoded(call)
        const passes = passedBytes > keptBytes ? { passedBytes } : {}
        return reader.limited(
          call,
          { keptBytes, readBytes: passedBytes, ...passes },
          async ({ content, bytes, passing }) => {
            if (passing !== undefined) return use({ ...passing, pieces: upTo(passing, passedBytes) })
            if (content === null) throw tooLarge(`more than ${passedBytes} bytes`, passedBytes)
            if (typeof content !== 'string' && bytes < LARGE_BODY_BYTES) throw notUtf8()
            return use(content)
          },
        )
      },
    }
    return reader
  }

  async #limited<Value>(
    { account, part }: { readonly account: string | null; readonly part: string },
    request: BodyRequest,
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

/**
 * One incoming body: in memory, or in a file when memory is full. Until it is complete,
 * another body may take its room.
 */
class HeldBody {
  readonly #holder
  readonly #rooms
  #pieces: Uint8Array[] = []
  #bytes = 0
  #memory: RoomClaim | null = null
  #disk: RoomClaim | null = null
  #file: SpilledBody | null = null
  /** The running move to a file. Later pieces are appended after it. */
  #moving: Promise<void> | null = null
  #lost = false

  constructor(
    holder: RoomHolder,
    rooms: {
      readonly memory: FairRoom
      readonly disk: FairRoom
      readonly spill: Spill | null
      readonly clock: Clock
      readonly freeBytes: number
    },
  ) {
    this.#holder = holder
    this.#rooms = rooms
  }

  get clock(): Clock {
    return this.#rooms.clock
  }

  /** True if no room was free for it. Then none of its bytes are held. */
  get lost(): boolean {
    return this.#lost
  }

  /** Adds the next piece if room is free. Null: done at once, because the body fits in memory. */
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

  /** The bytes so far. If they are in a file, waits for room in memory. @throws AppError `rate_limited` */
  async pieces(): Promise<readonly Uint8Array[]> {
    if (this.#moving === null && this.#file === null && !this.#lost) return this.#pieces
    const content = await this.content()
    return typeof content === 'string' ? [new TextEncoder().encode(content)] : content
  }

  /** The whole body. If it is in a file, waits for room in memory. @throws AppError `rate_limited` */
  content(): Body | Promise<Body> {
    if (this.#moving !== null || this.#file !== null) return this.#fileContent()
    if (this.#lost) throw noRoom()
    if (this.#memory !== null) this.#rooms.memory.fix(this.#memory)
    return decode(this.#pieces, this.#bytes)
  }

  /** Gets room for a body that is passed on as it arrives. @throws AppError `rate_limited` */
  reserve(): Promise<void> {
    return this.#whenRoom(PASSED_BYTES)
  }

  /** Releases all room. */
  leave(): void {
    this.#lost = true
    this.#pieces = []
    if (this.#memory !== null) this.#rooms.memory.leave(this.#memory)
    if (this.#disk !== null) this.#rooms.disk.leave(this.#disk)
    const dropFile = () => void this.#file?.drop()
    if (this.#moving === null) dropFile()
    else void this.#moving.then(dropFile)
  }

  /** Gives up the room in memory to another body, and moves to a file. */
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

  async #fileContent(): Promise<Body> {
    if (this.#moving !== null) await this.#moving
    if (this.#lost) throw noRoom()
    this.#rooms.disk.fix(this.#disk!)
    await this.#whenRoom(this.#bytes)
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

  async #whenRoom(bytes: number): Promise<void> {
    const { memory, clock } = this.#rooms
    const claim = memory.enter(this.#holder, () => {})
    memory.fix(claim)
    this.#memory = claim
    let stop = () => {}
    const late = new Promise<'late'>(resolve => {
      stop = clock.after(ROOM_WAIT_MS, () => resolve('late'))
    })
    const outcome = await Promise.race([memory.whenRoom(claim, bytes), late])
    stop()
    if (outcome === 'late') throw noRoom()
  }
}

/**
 * Reads a body and counts its bytes. Bytes over the limit are never held; `content` is null
 * for a body over the limit.
 */
async function readLimited({ request, env }: BodyRequest, limit: BodyLimit, held: HeldBody): Promise<LimitedBody> {
  const body = incomingBody({ request, env })
  if (body === null) return { content: '', bytes: 0, ended: true }
  const { passedBytes = 0 } = limit
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > limit.keptBytes && announced <= passedBytes) {
    env.untimed?.()
    await held.reserve()
    return passed([], body.pieces()[Symbol.asyncIterator](), { body, announced, clock: held.clock })
  }
  let bytes = 0
  const pieces = body.pieces()[Symbol.asyncIterator]()
  try {
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) {
      const piece = next.value
      bytes += piece.byteLength
      if (bytes > limit.readBytes) break
      // Keep counting without room: a body over the limit must fail as too large, not as rate limited.
      const couldPass = announced === 0 && passedBytes > 0 && bytes > limit.keptBytes
      if (couldPass && held.lost) {
        await pieces.return?.()
        body.drop()
        throw noRoom()
      }
      if (held.lost) continue
      if (couldPass) {
        env.untimed?.()
        return passed([...(await held.pieces()), piece], pieces, { body, announced, clock: held.clock })
      }
      if (bytes > limit.keptBytes) {
        held.leave()
        continue
      }
      const added = held.add(piece)
      if (added !== null) await added
    }
  } catch (error) {
    throw error instanceof AppError ? error : brokenOff(error)
  }
  if (bytes > limit.readBytes) {
    // Before that, nothing else could read the rest.
    await pieces.return?.()
    body.drop()
    return { content: null, bytes, ended: false }
  }
  if (bytes > limit.keptBytes) return { content: null, bytes, ended: true }
  const content = held.content()
  return { content: content instanceof Promise ? await content : content, bytes, ended: true }
}

/**
 * A body that is passed on as it arrives.
 * @param before the pieces that were read
 * @param rest the other ones
 * @param announced its bytes as its head says; 0 if it does not
 */
function passed(
  before: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
  { body, announced, clock }: { readonly body: IncomingBody; readonly announced: number; readonly clock: Clock },
): LimitedBody {
  async function* pieces(): AsyncGenerator<Uint8Array, void> {
    let isLate = false
    const onLate = () => {
      isLate = true
      body.drop()
    }
    try {
      for (const piece of before) yield* inTurns(piece)
      for await (const piece of paced(rest, clock, onLate)) yield* inTurns(piece)
    } catch (error) {
      throw error instanceof AppError ? error : brokenOff(error)
    } finally {
      // The end of a late one waits for its next piece.
      if (!isLate) await rest.return?.()
    }
  }
  const passing = { pieces: pieces(), announcedBytes: announced === 0 ? null : announced, drop: () => body.drop() }
  return { content: null, bytes: 0, ended: false, passing }
}

/** Pieces of a body that come at a pace. Throws AppError `invalid` for one that is slower, after `onLate`. */
async function* paced(
  pieces: AsyncIterator<Uint8Array>,
  clock: Clock,
  onLate: () => void,
): AsyncGenerator<Uint8Array, void> {
  let [bytes, waitedMs] = [0, 0]
  for (;;) {
    const beganMs = clock.monotonic()
    const allowedMs = PASSED_PACE.graceMs + (bytes / PASSED_PACE.bytesPerSecond) * 1_000
    const late = Promise.withResolvers<null>()
    const stop = clock.after(allowedMs - waitedMs, () => late.resolve(null))
    const next = await Promise.race([pieces.next(), late.promise])
    stop()
    if (next === null) {
      onLate()
      const pace = `${PASSED_PACE.bytesPerSecond / 1024} KB a second after the first ${PASSED_PACE.graceMs / 1_000} s`
      throw new AppError('invalid', `the request body came too slowly: a large one has to bring ${pace}`)
    }
    if (next.done === true) return
    waitedMs += clock.monotonic() - beganMs
    bytes += next.value.byteLength
    yield next.value
  }
}

/** The pieces of a body that passes. Throws AppError `too_large` where it has more bytes than this. */
async function* upTo({ pieces, drop }: PassingBody, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let bytes = 0
  for await (const piece of pieces) {
    bytes += piece.byteLength
    if (bytes > maxBytes) break
    yield piece
  }
  if (bytes <= maxBytes) return
  drop()
  throw tooLarge(`more than ${maxBytes} bytes`, maxBytes)
}

/** A piece in small parts, each in a turn of the event loop of its own: what was on disk is one piece. */
async function* inTurns(piece: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < piece.byteLength; at += PASSED_PART_BYTES) {
    if (at > 0) await new Promise(setImmediate)
    yield piece.subarray(at, at + PASSED_PART_BYTES)
  }
}

function brokenOff(cause: unknown): AppError {
  return new AppError('invalid', 'the connection ended before the request body did', { cause })
}

/** The body of a request as it arrives; null without one. */
export function incomingBody({ request, env }: BodyRequest): IncomingBody | null {
  return env.body === undefined ? bodyFromRequest(request) : env.body()
}

/** @throws AppError `unsupported_media` for a body with a compression or another content coding */
function refuseCoded(call: BodyRequest): void {
  const coding = (call.request.headers.get('content-encoding') ?? '').trim()
  if (coding === '' || coding.toLowerCase() === 'identity' || incomingBody(call) === null) return
  const name = coding.slice(0, 100)
  throw new AppError('unsupported_media', `a body with the Content-Encoding ${name} is not taken; send it without one`)
}

function bodyFromRequest({ body }: Request): IncomingBody | null {
  if (body === null) return null
  return {
    pieces: () => body.values({ preventCancel: true }) as AsyncIterable<Uint8Array>,
    drop: () => void body.pipeTo(new WritableStream()).catch(() => {}),
  }
}

function noRoom(): AppError {
  return new AppError('rate_limited', 'too many large requests are coming in', { retryAfterSeconds: 5 })
}

function tooLarge(size: string, maxBytes: number): AppError {
  return new AppError('too_large', `the request body is too large: ${size}, the limit is ${maxBytes} bytes`)
}

/**
 * Decodes a small body; one that is not UTF-8 stays in pieces. So does a large one, because joining and decoding it
 * would block the event loop.
 */
function decode(pieces: readonly Uint8Array[], bytes: number): Body {
  return bytes >= LARGE_BODY_BYTES ? pieces : (decodeBody(pieces) ?? pieces)
}
