import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../src/core/ids.ts'
import type { PlacedLine, WorkerLogs } from '../../src/ports/worker-logs.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createWorkerLogs } from '../../src/system/worker-logs/worker-logs.ts'
import { follow, plain, workerLogsContract } from '../contract/worker-logs.ts'

workerLogsContract('file', openFiles)

async function openFiles(maxBytes = 100_000) {
  const folder = await mkdtemp(join(tmpdir(), 'runyard-'))
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const restarted = () => createWorkerLogs({ folder: join(folder, 'logs'), clock, maxBytes })
  const logs = restarted()
  return {
    folder,
    logs,
    restarted,
    write: (worker: WorkerId, text: string | Buffer) => appendFile(logs.path(worker), text),
    grow: () => {
      aheadMs += 60_000
    },
    close: () => rm(folder, { recursive: true }),
  }
}

test('a removed worker leaves no file behind, and a trimmed one no more than the limit allows', async () => {
  const { folder, logs, write, grow, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    await write(worker, 'line\n'.repeat(100_000))
    await logs.trim(new Set([worker]))
    assert.equal((await stat(logs.path(worker))).size, 0)
    assert.deepEqual((await readdir(join(folder, 'logs'))).sort(), ['a.log', 'a.log.1', 'a.log.at'])
    const { size, mode } = await stat(`${logs.path(worker)}.1`)
    assert.ok(size > 45_000 && size <= 50_000)
    assert.equal(mode & 0o777, 0o600)
    grow()
    await logs.trim(new Set())
    assert.deepEqual(await readdir(join(folder, 'logs')), [])
  } finally {
    await close()
  }
})

test('an output of newlines is read in pages of bounded length, and nothing is lost', async () => {
  const { logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    const message = JSON.stringify({ requestId: null, message: '\n'.repeat(20_000), level: 'INFO' })
    await write(worker, `${'\n'.repeat(70_000)}${message}\nend\n`)
    const reader = logs.reader(worker, 0)
    const seen: string[] = []
    for (let more = true; more; ) {
      const page = await reader.next('over')
      assert.ok(page.lines.length <= 6_000, `${page.lines.length} lines`)
      seen.push(...page.lines.map(({ line }) => line))
      more = page.more
    }
    assert.equal(seen.length, 70_000 + 1_001 + 1)
    assert.deepEqual(seen.slice(-2), ['... (only 1000 lines of a message are kept)', 'end'])
    assert.equal((await logs.tail(worker, 5_000)).length, 5_000)
  } finally {
    await close()
  }
})

test('what a server that was killed while it cut an output left is removed with it', async () => {
  const { folder, logs, grow, close } = await openFiles()
  try {
    await writeFile(join(folder, 'logs', 'a.log.1.new'), 'half a lin')
    await writeFile(join(folder, 'logs', 'b.log.1.new'), 'half a lin')
    grow()
    await logs.trim(new Set(['b' as WorkerId]))
    assert.deepEqual(await readdir(join(folder, 'logs')), [])
  } finally {
    await close()
  }
})

test('following continues after another program has emptied the file', { timeout: 60_000 }, async () => {
  const { logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  const abort = new AbortController()
  try {
    await write(worker, 'a long line\n')
    const lines = follow(logs, worker, 1, abort.signal)[Symbol.asyncIterator]()
    await lines.next()
    await truncate(logs.path(worker), 0)
    await write(worker, 'new\n')
    assert.deepEqual((await lines.next()).value, plain('new')[0])
  } finally {
    abort.abort()
    await close()
  }
})

/** Reads all that there is behind a position. */
async function rest(logs: WorkerLogs, worker: WorkerId, from: number, most = Number.POSITIVE_INFINITY) {
  const reader = logs.reader(worker, from)
  const lines: PlacedLine[] = []
  for (let more = true; more && lines.length < most; ) {
    const page = await reader.next()
    lines.push(...page.lines)
    more = page.more
  }
  return lines.slice(0, most)
}

test('a reader that resumes after any line gets the next ones, each once, across cuts of the output and restarts of the server', async () => {
  const worker = 'a' as WorkerId
  const sdk = (n: number) => JSON.stringify({ requestId: 'job', message: `s${n}\nt${n}`, level: 'INFO' })
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ lines: fc.integer({ min: 1, max: 40 }), wide: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ read: fc.integer({ min: 0, max: 30 }) }) },
    { weight: 1, arbitrary: fc.constantFrom('trim', 'restart', 'half' as const) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const files = await openFiles(20_000)
      let { logs } = files
      let position = 0
      let count = 0
      const expected: string[] = []
      const seen: PlacedLine[] = []
      const read = async (most: number) => {
        const lines = await rest(logs, worker, position, most)
        position = lines.at(-1)?.position ?? position
        seen.push(...lines)
      }
      try {
        for (const one of steps) {
          if (one === 'trim') {
            // What is cut away unread is gone, which is another test.
            await read(Number.POSITIVE_INFINITY)
            await logs.trim(new Set([worker]))
          } else if (one === 'restart') logs = files.restarted()
          else if (one === 'half') await files.write(worker, 'half a ')
          else if ('read' in one) await read(one.read)
          else {
            const lines = Array.from({ length: one.lines }, (_, n) =>
              n % 7 === 3 ? sdk(count++) : `l${count++} ${'x'.repeat(one.wide ? 400 : 3)}`,
            )
            await files.write(worker, `${lines.join('\n')}\n`)
            expected.push(...lines)
          }
        }
        await read(Number.POSITIVE_INFINITY)
        const numbers = seen.flatMap(({ line }) => /(?:^|half a |INFO )[ls](\d+)/.exec(line)?.[1] ?? [])
        const whole = Array.from({ length: count }, (_, n) => String(n))
        // A message behind half a line is no message any more.
        const torn = seen.filter(({ line }) => line.includes('half a {"requestId"')).length
        assert.equal(numbers.length + torn, whole.length)
        assert.deepEqual(
          numbers,
          whole.filter(n => numbers.includes(n)),
        )
        for (const [index, line] of seen.entries()) {
          const before = seen[index - 1]
          assert.ok(before === undefined || (line.position > before.position && line.tsMs >= before.tsMs))
        }
        const stable = await rest(files.restarted(), worker, 0)
        assert.deepEqual(stable, seen.slice(seen.length - stable.length), 'places and times are as they were given out')
      } finally {
        await files.close()
      }
    }),
    { numRuns: 60 },
  )
})

test('a line has the time at which it was first read, or at which its file was last written without a reader', async () => {
  const { folder, logs, restarted, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    const startMs = systemClock.now()
    await write(worker, 'one\n')
    const [one] = await rest(logs, worker, 0)
    assert.ok(one!.tsMs >= startMs - 100 && one!.tsMs <= systemClock.now())
    await write(worker, 'two\n')
    // It was written an hour later by a worker whose server was away.
    const lateMs = startMs - 3_600_000
    await utimes(join(folder, 'logs', 'a.log'), lateMs / 1000, lateMs / 1000)
    const [, two] = await rest(restarted(), worker, 0)
    assert.equal(two!.tsMs, one!.tsMs, 'time does not go back')
    await write(worker, 'three\n')
    const aheadMs = startMs + 3_600_000
    await utimes(join(folder, 'logs', 'a.log'), aheadMs / 1000, aheadMs / 1000)
    const three = (await rest(restarted(), worker, 0)).at(-1)!
    assert.ok(three.tsMs <= systemClock.now(), 'no line is of the future')
    assert.equal(await logs.startOfTime(worker, 0), 0)
  } finally {
    await close()
  }
})

test('a mark divides an output: lines in front of it are earlier, and lines behind it later, whatever the time of the file', async () => {
  const { folder, logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    const startMs = systemClock.now()
    await write(worker, 'before\n')
    const beforeMarkMs = systemClock.now()
    logs.mark(worker)
    const markedMs = systemClock.now()
    await write(worker, 'behind\n')
    // The time of a file is coarse: it may be before the mark.
    await utimes(join(folder, 'logs', 'a.log'), startMs / 1000 - 1, startMs / 1000 - 1)
    logs.mark('without output' as WorkerId)
    while (systemClock.now() <= markedMs + 1);
    const [before, behind] = await rest(logs, worker, 0)
    assert.ok(before!.tsMs <= markedMs, `${before!.tsMs} is not in front of ${markedMs}`)
    assert.ok(behind!.tsMs > before!.tsMs, `${behind!.tsMs} is not behind ${before!.tsMs}`)
    assert.ok(behind!.tsMs > beforeMarkMs, `${behind!.tsMs} is not behind ${beforeMarkMs}`)
  } finally {
    await close()
  }
})

test('a server that is killed in the middle of a cut loses and doubles nothing', async () => {
  const worker = 'a' as WorkerId
  const text = Array.from({ length: 3_000 }, (_, n) => `line ${n}`)
  for (const stage of ['draft', 'named', 'emptied'] as const) {
    const { folder, logs, restarted, write, close } = await openFiles(20_000)
    try {
      await write(worker, `${text.join('\n')}\n`)
      const before = await rest(logs, worker, 0)
      const size = (await stat(logs.path(worker))).size
      const file = join(folder, 'logs', 'a.log')
      const kept = (await readFile(file)).subarray(size - 10_000)
      const lineStart = kept.indexOf(10) + 1
      await appendFile(`${file}.at`, `c ${size} ${size - 10_000 + lineStart}\n`)
      await writeFile(stage === 'draft' ? `${file}.1.new` : `${file}.1`, kept.subarray(lineStart))
      if (stage === 'emptied') await truncate(file)
      const next = restarted()
      assert.deepEqual(
        (await rest(next, worker, before[2_900]!.position)).map(({ line }) => line),
        text.slice(2_901),
        stage,
      )
      await write(worker, 'more\n')
      await next.trim(new Set([worker]))
      const after = await rest(next, worker, before[2_900]!.position)
      assert.deepEqual(
        after.map(({ line }) => line),
        [...text.slice(2_901), 'more'],
        stage,
      )
      assert.deepEqual(await rest(restarted(), worker, before[2_900]!.position), after, stage)
    } finally {
      await close()
    }
  }
})
