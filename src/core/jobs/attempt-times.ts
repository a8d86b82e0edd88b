/**
 * Times of attempts: the facts of each attempt at a job that are kept to compute the effect of other settings. They
 * take about ten bytes an attempt; those of one endpoint are packed into blocks.
 */

/** Beginning of the wait, beginning and end of the run of an attempt. Instants are epoch milliseconds. */
export interface AttemptTimes {
  readonly queuedAtMs: number
  readonly startedAtMs: number
  readonly finishedAtMs: number
  /** True if it waited for the start of its worker, and was the worker's first job. */
  readonly cold: boolean
}

/** Retention: a block is deleted this long after the end of its last attempt. */
export const ATTEMPT_TIMES_KEPT_MS = 30 * 24 * 3_600_000
/** Limits of a block: attempts, and the time between the ends of the first and the last. */
export const BLOCK_LIMITS = { attempts: 1_000, lengthMs: 7 * 24 * 3_600_000 } as const
/** Limits of blocks of an endpoint, and of an account. Beyond them the oldest are deleted. */
export const MAX_BLOCKS = { ofEndpoint: 300, ofAccount: 10_000 } as const

/** A block as it is stored. `toMs` is the end of its last attempt; it begins with the end of the first. */
export interface TimesBlock {
  readonly atMs: number
  readonly toMs: number
  readonly attempts: number
  /** Base64; see {@link packTimes}. */
  readonly packed: string
}

/** The bits of a byte that belong to the value; the eighth means that more bytes follow. */
const BITS = 128

/**
 * Packs times in their order. Numbers of each attempt: the time since the end of the previous one, twice its run
 * in milliseconds plus 1 for a cold start, and its wait.
 * @param afterMs end of the attempt before the first
 */
export function packTimes(times: readonly AttemptTimes[], afterMs: number): Uint8Array {
  const bytes: number[] = []
  let lastMs = afterMs
  for (const { queuedAtMs, startedAtMs, finishedAtMs, cold } of times) {
    const laterMs = finishedAtMs - lastMs
    // Clocks can be set back, so the time can be negative.
    put(bytes, laterMs >= 0 ? 2 * laterMs : -2 * laterMs - 1)
    put(bytes, 2 * Math.max(0, finishedAtMs - startedAtMs) + (cold ? 1 : 0))
    put(bytes, Math.max(0, startedAtMs - queuedAtMs))
    lastMs = finishedAtMs
  }
  return Uint8Array.from(bytes)
}

/** Unpacks times; those of truncated bytes end before the cut. */
export function unpackTimes(bytes: Uint8Array, afterMs: number): AttemptTimes[] {
  const times: AttemptTimes[] = []
  let at = 0
  let lastMs = afterMs
  const next = () => {
    let value = 0
    for (let unit = 1; at < bytes.length; unit *= BITS) {
      const byte = bytes[at++]!
      value += (byte % BITS) * unit
      if (byte < BITS) return value
    }
    return null
  }
  while (at < bytes.length) {
    const [later, run, waitMs] = [next(), next(), next()]
    if (later === null || run === null || waitMs === null) break
    const finishedAtMs = lastMs + (later % 2 === 0 ? later / 2 : -(later + 1) / 2)
    const startedAtMs = finishedAtMs - Math.floor(run / 2)
    times.push({ queuedAtMs: startedAtMs - waitMs, startedAtMs, finishedAtMs, cold: run % 2 === 1 })
    lastMs = finishedAtMs
  }
  return times
}

/** The times of a block. */
export function timesFromBlock({ atMs, packed }: Pick<TimesBlock, 'atMs' | 'packed'>): AttemptTimes[] {
  return unpackTimes(Uint8Array.fromBase64(packed), atMs)
}

/**
 * Appends times to a block: the block with as many of them as it has room for, and new blocks with the others.
 * @param last the newest block of the endpoint, or null
 * @returns the blocks that changed or are new, in order; the first replaces `last` if it begins with it
 */
export function appendTimes(last: TimesBlock | null, times: readonly AttemptTimes[]): TimesBlock[] {
  const blocks: TimesBlock[] = []
  let block = last
  let rest = times
  while (rest.length > 0) {
    const firstMs = rest[0]!.finishedAtMs
    const isOpen = block !== null && block.attempts < BLOCK_LIMITS.attempts && isWithin(block.atMs, firstMs)
    // The beginning of a block identifies it.
    const open = isOpen && block !== null ? block : newBlock(Math.max(firstMs, (block?.atMs ?? firstMs - 1) + 1))
    const room = rest.slice(0, BLOCK_LIMITS.attempts - open.attempts)
    const end = room.findIndex(({ finishedAtMs }, index) => index > 0 && !isWithin(open.atMs, finishedAtMs))
    const taken = end < 0 ? room : room.slice(0, end)
    block = extended(open, taken)
    blocks.push(block)
    rest = rest.slice(taken.length)
  }
  return blocks
}

function isWithin(atMs: number, finishedAtMs: number): boolean {
  return Math.abs(finishedAtMs - atMs) < BLOCK_LIMITS.lengthMs
}

function newBlock(atMs: number): TimesBlock {
  return { atMs, toMs: atMs, attempts: 0, packed: '' }
}

function extended(block: TimesBlock, times: readonly AttemptTimes[]): TimesBlock {
  const packed = Uint8Array.fromBase64(block.packed)
  const more = packTimes(times, block.toMs)
  const bytes = new Uint8Array(packed.length + more.length)
  bytes.set(packed)
  bytes.set(more, packed.length)
  const toMs = times.at(-1)?.finishedAtMs ?? block.toMs
  return { atMs: block.atMs, toMs, attempts: block.attempts + times.length, packed: bytes.toBase64() }
}

function put(bytes: number[], value: number): void {
  let rest = value
  while (rest >= BITS) {
    bytes.push((rest % BITS) + BITS)
    rest = Math.floor(rest / BITS)
  }
  bytes.push(rest)
}
