/** That the output of a container is copied once and whole, whatever its order and wherever the copying is cut off. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { ByteBudget } from '../../../src/core/byte-budget.ts'
import { gatherBytes } from '../../../src/drivers/base/byte-source.ts'
import { COPY_RATE, LogCopy } from '../../../src/drivers/base/log-copy.ts'
import { BEGIN, type LogEntry, LogPosition } from '../../../src/drivers/base/log-position.ts'
import { entriesFromFrames } from '../../../src/drivers/docker/log-frames.ts'
import { systemClock } from '../../../src/system/clock.ts'

const START_S = 1_700_000_000

/** The next piece of output of a stream: whole lines, or parts of a long one, which all have the time of the first. */
interface Piece {
  readonly stream: 1 | 2
  readonly ends: boolean
  /** Delay after the previous one, in tenths of a second. */
  readonly later: number
}

/** Log of an engine with these pieces: entries in the order in which they were written. */
function entriesOf(pieces: readonly Piece[]): LogEntry[] {
  const begun = new Map<number, string>()
  let tenths = START_S * 10
  return pieces.map(({ stream, ends, later }, number) => {
    tenths += later
    const now = `${String(Math.floor(tenths / 10)).padStart(12, '0')}.${tenths % 10}${String(number).padStart(8, '0')}`
    const at = begun.get(stream) ?? now
    if (ends) begun.delete(stream)
    else begun.set(stream, at)
    return { at, stream, text: Buffer.from(`${number}${ends ? '\n' : ' '}`) }
  })
}

const since = (entries: readonly LogEntry[], second: number) =>
  entries.filter(({ at }) => Number(at.split('.')[0]) >= second)

const pieces = fc.array(
  fc.record({
    stream: fc.constantFrom(1 as const, 2 as const),
    ends: fc.boolean(),
    later: fc.integer({ min: 0, max: 40 }),
  }),
  { maxLength: 120 },
)

test('each entry is new once, however often the output is asked for, although times are not in order', () => {
  fc.assert(
    fc.property(pieces, fc.array(fc.integer({ min: 0, max: 40 })), (all, cuts) => {
      const entries = entriesOf(all)
      const read: LogEntry[] = []
      let place = BEGIN
      let written = 0
      for (const cut of [...cuts, Number.POSITIVE_INFINITY]) {
        // Another server, which knows the place alone.
        const position = new LogPosition(place)
        position.begin()
        written = Math.min(entries.length, written + cut)
        for (const entry of since(entries.slice(0, written), place.since)) if (position.isNew(entry)) read.push(entry)
        place = position.place
      }
      assert.deepEqual(read, entries)
    }),
    { numRuns: 500 },
  )
})

test('a place stays behind at most some seconds with output, even while a line never ends', () => {
  const all = Array.from({ length: 5_000 }, (_, n) => ({ stream: 1 as const, ends: n > 0 && n % 2 === 0, later: 10 }))
  const entries = entriesOf([{ stream: 2, ends: false, later: 0 }, ...all])
  const position = new LogPosition(BEGIN)
  position.begin()
  for (const entry of entries) assert.ok(position.isNew(entry))
  assert.ok(position.place.since > START_S + 1_000, String(position.place.since))
})

test('where the engine has thrown the oldest entries away, the newer ones are still read once', () => {
  const entries = entriesOf(Array.from({ length: 60 }, () => ({ stream: 1 as const, ends: true, later: 1 })))
  const first = new LogPosition(BEGIN)
  first.begin()
  for (const entry of entries.slice(0, 40)) first.isNew(entry)
  const next = new LogPosition(first.place)
  next.begin()
  const fresh = since(entries, first.place.since)
    .slice(15)
    .filter(entry => next.isNew(entry))
  assert.deepEqual(fresh, entries.slice(40))
})

/** An engine that hands out entries, and breaks off after some. */
function playedEngine(entries: () => readonly LogEntry[], most: () => number) {
  return async (sinceS: number) => {
    const wanted = since(entries(), sinceS).slice(0, most())
    const frames = wanted.map(({ at, stream: number, text }) => {
      const [seconds, nanos] = at.split('.')
      const time = `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${nanos}Z `
      const head = Buffer.alloc(8)
      head[0] = number
      head.writeUInt32BE(time.length + text.length, 4)
      return Buffer.concat([head, Buffer.from(time), text])
    })
    const bytes = Buffer.concat(frames)
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += 50) yield bytes.subarray(at, at + 50)
    }
    return entriesFromFrames(Object.assign(chunks(), { destroy: () => {} }))
  }
}

function copying(context: TestContext, entries: readonly LogEntry[]) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-copy-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const [logFolder, noteFile] = [join(folder, 'log'), join(folder, 'note')]
  const logFile = join(logFolder, '0.log')
  const budget = new ByteBudget(COPY_RATE, systemClock)
  return {
    logFile,
    noteFile,
    /** A server copies the first entries and ends. */
    async copy(written: number) {
      const read = playedEngine(
        () => entries.slice(0, written),
        () => Number.POSITIVE_INFINITY,
      )
      const copy = new LogCopy({ read, clock: systemClock, budget, logFolder, noteFile })
      await copy.finish(5_000)
    },
    text: () => readFileSync(logFile, 'utf8'),
  }
}

const LINES = entriesOf(Array.from({ length: 90 }, (_, n) => ({ stream: 1 as const, ends: true, later: n % 3 })))
const whole = (from = 0) =>
  LINES.slice(from)
    .map(({ text }) => String(text))
    .join('')

test('a copy continues where the one before ended', async context => {
  const machine = copying(context, LINES)
  for (const written of [10, 10, 40, 90]) await machine.copy(written)
  assert.equal(machine.text(), whole())
})

test('what was written after the last note is not written again', async context => {
  const machine = copying(context, LINES)
  await machine.copy(30)
  // The server was killed between a line and the note about it, and in the middle of another line.
  appendFileSync(
    machine.logFile,
    `${LINES.slice(30, 50)
      .map(({ text }) => String(text))
      .join('')}${String(LINES[50]?.text).slice(0, 1)}`,
  )
  await machine.copy(90)
  assert.equal(machine.text(), whole())
})

test('a log that was truncated between two copies is copied further', async context => {
  const machine = copying(context, LINES)
  await machine.copy(30)
  truncateSync(machine.logFile)
  await machine.copy(60)
  assert.equal(
    machine.text(),
    LINES.slice(30, 60)
      .map(({ text }) => String(text))
      .join(''),
  )
  await machine.copy(90)
  assert.equal(machine.text(), whole(30))
})

test('without a readable note nothing is there twice', async context => {
  const machine = copying(context, LINES)
  await machine.copy(30)
  truncateSync(machine.noteFile, 5)
  await machine.copy(90)
  assert.equal(machine.text(), whole())
  assert.equal(statSync(machine.noteFile).mode & 0o777, 0o600)
})

test('lines that an engine sends one by one are read together, so that a flood of them costs little', async () => {
  const stream = new PassThrough()
  const lines = Array.from({ length: 1_000 }, (_, n) => `line ${n}\n`)
  for (const line of lines) stream.write(line)
  stream.end()
  const pieces: string[] = []
  for await (const piece of gatherBytes(stream)) pieces.push(piece.toString())
  assert.equal(pieces.join(''), lines.join(''))
  assert.ok(pieces.length < 10, `${pieces.length} pieces`)
})
