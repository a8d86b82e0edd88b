/**
 * Contract of every store of workers' output. A library: the test file of each one calls it with a way to make one.
 */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { WorkerId } from '../../src/core/ids.ts'
import type { LogLine, WorkerLogs } from '../../src/ports/worker-logs.ts'
import { patient } from '../support/patience.ts'

/** A keeper of outputs whose limit is 400 kB, and workers that write. */
export interface WorkerLogsHarness {
  readonly logs: WorkerLogs
  /** Lets a worker write, as one that runs does. */
  write(worker: WorkerId, text: string | Buffer): Promise<void>
  /** Lets so much time pass that no worker counts as new. */
  grow(): void
  close(): Promise<void>
}

const a = 'a' as WorkerId
const b = 'b' as WorkerId

/** Lines of plain output. */
export function plain(...lines: string[]): LogLine[] {
  return lines.map(line => ({ line, jobId: null }))
}

/** The first `count` lines of what is followed. */
export async function take(lines: AsyncIterable<LogLine>, count: number): Promise<LogLine[]> {
  const taken: LogLine[] = []
  for await (const line of lines) {
    taken.push(line)
    if (taken.length === count) break
  }
  return taken
}

/** The last `count` finished lines and then new ones as they come, until the signal aborts. */
export async function* follow(
  logs: WorkerLogs,
  worker: WorkerId,
  count: number,
  signal: AbortSignal,
): AsyncGenerator<LogLine, void, undefined> {
  let wake = () => {}
  const unwatch = logs.watch(worker, () => wake())
  const leave = () => {
    unwatch()
    wake()
  }
  signal.addEventListener('abort', leave)
  const reader = logs.reader(worker, await logs.startOfLast(worker, count))
  try {
    while (!signal.aborted) {
      const grown = new Promise<void>(resolve => (wake = resolve))
      const { lines, more } = await reader.next()
      for (const { line, jobId } of lines) {
        if (signal.aborted) return
        yield { line, jobId }
      }
      if (lines.length === 0 && !more && !signal.aborted) await grown
    }
  } finally {
    unwatch()
  }
}

/** Runs the contract. */
export function workerLogsContract(name: string, open: () => Promise<WorkerLogsHarness>): void {
  describe(`the ${name} worker logs`, { timeout: patient(60_000) }, () => {
    let harness: WorkerLogsHarness
    const abort = { controller: new AbortController() }
    beforeEach(async () => {
      abort.controller = new AbortController()
      harness = await open()
    })
    afterEach(async () => {
      abort.controller.abort()
      await harness.close()
    })

    readingContract(() => harness)
    sinceContract(() => harness)
    followingContract(
      () => harness,
      () => abort.controller,
    )
    trimmingContract(
      () => harness,
      () => abort.controller,
    )
  })
}

function readingContract(harness: () => WorkerLogsHarness): void {
  const written = async (text: string | Buffer, lines = 100) => {
    await harness().write(a, text)
    return await harness().logs.tail(a, lines)
  }

  test('a worker without output has no lines', async () => {
    assert.deepEqual(await harness().logs.tail(a, 10), [])
    assert.deepEqual(await written(''), [])
  })

  test('the last lines are given, oldest first, each worker its own', async () => {
    await harness().write(b, 'of another\n')
    assert.deepEqual(await written('one\ntwo\n\nthree\n'), plain('one', 'two', '', 'three'))
    assert.deepEqual(await harness().logs.tail(a, 2), plain('', 'three'))
    assert.deepEqual(await harness().logs.tail(a, 0), [])
  })

  test('an empty first line and a last one without an end are lines too', async () => {
    assert.deepEqual(await written('\none\ntwo'), plain('', 'one', 'two'))
    assert.deepEqual(await harness().logs.tail(a, 1), plain('two'))
  })

  test('the last lines of a long output are found', async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} ${'ä'.repeat(index % 40)}`)
    assert.deepEqual(await written(`${lines.join('\n')}\n`, 5_000), plain(...lines.slice(-5_000)))
  })

  test('a line over 64 KiB is cut, never within a character', async () => {
    const [before, long, after] = await written(`before\n${'x'.repeat(65_535)}ää${'y'.repeat(200_000)}\nafter\n`)
    assert.deepEqual(before, plain('before')[0])
    assert.equal(long?.line, 'x'.repeat(65_535))
    assert.deepEqual(after, plain('after')[0])
  })

  test('bytes that are not UTF-8 are shown as far as possible', async () => {
    assert.deepEqual(await written(Buffer.from([0x61, 0xff, 0x62, 0x0a])), plain('a\ufffdb'))
  })

  test('a message of the worker SDK is shown as text and belongs to its job', async () => {
    const message = (fields: object) => `${JSON.stringify(fields)}\n`
    const text =
      message({ requestId: 'job-1', message: 'Started.', level: 'INFO' }) +
      message({ requestId: null, message: 'two\nlines', level: 'ERROR' }) +
      message({ requestId: 'job-1', text: 'no message' }) +
      '{ no json\n'
    assert.deepEqual(await written(text), [
      { line: 'INFO Started.', jobId: 'job-1' },
      ...plain('ERROR two', 'lines', '{"requestId":"job-1","text":"no message"}', '{ no json'),
    ])
    assert.deepEqual(
      await harness().logs.tail(a, 3),
      plain('lines', '{"requestId":"job-1","text":"no message"}', '{ no json'),
    )
  })

  test('a line that overwrites itself is shown in its last state', async () => {
    assert.deepEqual(await written('10 %\r50 %\r100 %\r\nwindows\r\n'), plain('100 %', 'windows'))
  })
}

function sinceContract(harness: () => WorkerLogsHarness): void {
  const since = (from: number | null) => harness().logs.since(a, from)

  test('lines are read on from where the last call ended, each once it is complete', async () => {
    assert.deepEqual((await since(null)).lines, [])
    await harness().write(a, 'one\ntw')
    const first = await since(null)
    assert.deepEqual(first.lines, plain('one'))
    assert.deepEqual((await since(first.position)).lines, [])
    await harness().write(a, 'o\nthree\n')
    const second = await since(first.position)
    assert.deepEqual(second.lines, plain('two', 'three'))
    assert.deepEqual(await since(second.position), { lines: [], position: second.position })
  })

  test('of an output that grows too fast the last lines are read, each whole', async () => {
    const { position } = await since(null)
    const lines = Array.from({ length: 40_000 }, (_, index) => `line ${index}`)
    await harness().write(a, `${lines.join('\n')}\n`)
    const read = (await since(position)).lines
    assert.ok(read.length > 10_000 && read.length < 40_000, String(read.length))
    assert.deepEqual(read, plain(...lines.slice(-read.length)))
  })

  test('an output that was truncated between two reads is read further', async () => {
    await harness().write(a, `${'x'.repeat(99)}\n`.repeat(6_000))
    const { position } = await since(null)
    await harness().write(a, 'before\n')
    await harness().logs.trim(new Set([a]))
    await harness().write(a, 'after\n')
    assert.deepEqual((await since(position)).lines, plain('before', 'after'))
  })
}

function followingContract(harness: () => WorkerLogsHarness, abort: () => AbortController): void {
  test('old lines come first and new ones as they are written', async () => {
    await harness().write(a, 'one\ntwo\nthr')
    const lines = follow(harness().logs, a, 1, abort().signal)[Symbol.asyncIterator]()
    assert.deepEqual((await lines.next()).value, plain('two')[0])
    const next = lines.next()
    await harness().write(a, 'ee\nfour\n')
    assert.deepEqual((await next).value, plain('three')[0], 'a line is given once it is complete')
    assert.deepEqual((await lines.next()).value, plain('four')[0])
  })

  test('a worker that has written nothing yet can be followed', async () => {
    const taken = take(follow(harness().logs, a, 10, abort().signal), 2)
    await harness().write(a, 'one\ntwo\n')
    assert.deepEqual(await taken, plain('one', 'two'))
  })

  test('following without old lines starts with a complete one', async () => {
    await harness().write(a, 'one\ntw')
    const lines = follow(harness().logs, a, 0, abort().signal)[Symbol.asyncIterator]()
    let line: string | undefined
    const next = lines.next().then(({ value }) => {
      line = value?.line
    })
    // Its start cannot be observed from outside, so the worker writes until a line has arrived.
    await harness().write(a, 'o\n')
    for (let count = 0; line === undefined; count++) await harness().write(a, `line ${count}\n`)
    await next
    assert.match(line, /^(?:two|line \d+)$/)
  })

  test('following ends when it is aborted, while it waits and before it begins', async () => {
    await harness().write(a, 'one\n')
    const seen: LogLine[] = []
    for await (const line of follow(harness().logs, a, 10, abort().signal)) {
      seen.push(line)
      abort().abort()
    }
    assert.deepEqual(seen, plain('one'))
    const waiting = new AbortController()
    const taken = take(follow(harness().logs, b, 10, waiting.signal), 1)
    waiting.abort()
    assert.deepEqual(await taken, [])
    assert.deepEqual((await take(follow(harness().logs, b, 10, waiting.signal), 1)).length, 0)
  })

  test('a long line comes cut, and what follows it whole', async () => {
    const taken = take(follow(harness().logs, a, 10, abort().signal), 2)
    await harness().write(a, `${'x'.repeat(300_000)}\nafter\n`)
    const [long, after] = await taken
    assert.equal(long?.line, 'x'.repeat(65_536))
    assert.deepEqual(after, plain('after')[0])
  })
}

function trimmingContract(harness: () => WorkerLogsHarness, abort: () => AbortController): void {
  const numbered = (from: number, count: number) => Array.from({ length: count }, (_, index) => `line ${from + index}`)
  const text = (lines: string[]) => `${lines.join('\n')}\n`

  test('an output within its limit is left alone', async () => {
    await harness().write(a, text(numbered(0, 100)))
    await harness().logs.trim(new Set([a]))
    assert.deepEqual(await harness().logs.tail(a, 1_000), plain(...numbered(0, 100)))
  })

  test('of a long output the last part is kept, in whole lines, and the worker writes on', async () => {
    await harness().write(a, text(numbered(0, 100_000)))
    await harness().logs.trim(new Set([a]))
    await harness().write(a, text(numbered(100_000, 10)))
    const kept = (await harness().logs.tail(a, 200_000)).map(({ line }) => line)
    assert.ok(kept.length > 20_000 && kept.length < 45_000, `${kept.length} lines`)
    assert.deepEqual(kept, numbered(100_010 - kept.length, kept.length))
  })

  test('one that follows misses nothing when the output is cut', async () => {
    await harness().write(a, 'start\n')
    const lines = follow(harness().logs, a, 1, abort().signal)[Symbol.asyncIterator]()
    await lines.next()
    for (let from = 0; from < 60_000; from += 20_000) {
      await harness().write(a, text(numbered(from, 16_000)))
      for (const line of numbered(from, 16_000)) assert.equal((await lines.next()).value?.line, line)
      await harness().write(a, text(numbered(from + 16_000, 3_000)))
      await harness().logs.trim(new Set([a]))
      await harness().write(a, text(numbered(from + 19_000, 1_000)))
      for (const line of numbered(from + 16_000, 4_000)) assert.equal((await lines.next()).value?.line, line)
    }
  })

  test('says how many bytes each output has, and makes outputs smaller while their workers write', async () => {
    await harness().write(a, text(numbered(0, 2_000)))
    await harness().write(b, 'short\n')
    const bytes = await harness().logs.trim(new Set([a, b]))
    assert.ok(bytes.get(a)! >= text(numbered(0, 2_000)).length, String(bytes.get(a)))
    assert.ok(bytes.get(b)! >= 6 && bytes.get(b)! < 1_000, String(bytes.get(b)))
    await harness().logs.shrink(
      new Map([
        [a, 4_000],
        [b, 0],
      ]),
    )
    assert.deepEqual(await harness().logs.tail(b, 10), [])
    const after = await harness().logs.trim(new Set([a, b]))
    assert.ok(after.get(a)! <= 4_000, String(after.get(a)))
    await harness().write(a, 'next\n')
    const tail = await harness().logs.tail(a, 2)
    assert.deepEqual(
      tail.map(({ line }) => line),
      [numbered(1_999, 1)[0], 'next'],
    )
  })

  test('the outputs of workers that are gone are removed, but not of one that has only just been made', async () => {
    await harness().write(a, 'old\n')
    harness().grow()
    await harness().write(b, 'new\n')
    await harness().logs.trim(new Set())
    assert.deepEqual(await harness().logs.tail(a, 10), [])
    assert.deepEqual(await harness().logs.tail(b, 10), plain('new'))
    harness().grow()
    await harness().logs.trim(new Set([b]))
    assert.deepEqual(await harness().logs.tail(b, 10), plain('new'))
    await harness().logs.trim(new Set())
    assert.deepEqual(await harness().logs.tail(b, 10), [])
  })
}
