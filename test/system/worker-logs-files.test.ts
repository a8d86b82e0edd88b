import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { WorkerId } from '../../src/core/ids.ts'
import { listParts, OutputWriter, partFile } from '../../src/disk/worker-output.ts'
import type { PlacedLine, WorkerLogs } from '../../src/ports/worker-logs.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createWorkerLogs } from '../../src/system/worker-logs/worker-logs.ts'
import { follow, plain, workerLogsContract } from '../contract/worker-logs.ts'
import { patient } from '../support/patience.ts'

workerLogsContract('file', openFiles)

async function openFiles(maxBytes = 400_000) {
  const folder = await mkdtemp(join(tmpdir(), 'runyard-'))
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const restarted = () => createWorkerLogs({ folder: join(folder, 'logs'), clock, maxBytes })
  const logs = restarted()
  const writers = new Map<WorkerId, OutputWriter>()
  return {
    folder,
    logs,
    restarted,
    async write(worker: WorkerId, text: string | Buffer) {
      const writer = writers.get(worker) ?? (await OutputWriter.open(logs.folder(worker), maxBytes))
      writers.set(worker, writer)
      await writer.write(Buffer.from(text))
    },
    grow: () => {
      aheadMs += 60_000
    },
    async close() {
      for (const writer of writers.values()) await writer.close()
      await rm(folder, { recursive: true })
    },
  }
}

/** The output in the files of a folder, in its order. */
async function kept(folder: string): Promise<Buffer> {
  return Buffer.concat(await Promise.all(listParts(folder).map(begin => readFile(partFile(folder, begin)))))
}

test('whatever is written, the last of it is on the disk, and no more than the limit and a line for each file', async () => {
  const chunk = fc.record({ bytes: fc.integer({ min: 0, max: 150_000 }), line: fc.integer({ min: 1, max: 100_000 }) })
  await fc.assert(
    fc.asyncProperty(fc.array(chunk, { maxLength: 20 }), fc.boolean(), async (chunks, isReopened) => {
      const folder = join(await mkdtemp(join(tmpdir(), 'runyard-')), 'a')
      let writer = await OutputWriter.open(folder, 100_000)
      try {
        let all = Buffer.alloc(0)
        for (const { bytes, line } of chunks) {
          const text = Buffer.alloc(bytes, 'x')
          for (let at = line; at < bytes; at += line) text[at] = 0x0a
          await writer.write(text)
          all = Buffer.concat([all, text])
          assert.equal(writer.end, all.length)
          const found = await kept(folder)
          assert.ok(found.length <= 100_000 + 4 * 65_536, `${found.length} bytes`)
          assert.ok(found.length >= Math.min(all.length, 75_000), `${found.length} of ${all.length} bytes`)
          assert.ok(found.equals(all.subarray(all.length - found.length)))
          if (!isReopened) continue
          await writer.close()
          writer = await OutputWriter.open(folder, 100_000)
        }
      } finally {
        await writer.close()
        await rm(join(folder, '..'), { recursive: true })
      }
    }),
    { numRuns: 30 },
  )
})

test('a removed worker leaves no file behind, and its files are for their owner alone', async () => {
  const { folder, logs, write, grow, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    await write(worker, 'line\n'.repeat(200_000))
    await logs.trim(new Set([worker]))
    const names = await readdir(logs.folder(worker))
    assert.equal(names.length, 5, 'the parts, and when they were written')
    for (const name of names) assert.equal((await stat(join(logs.folder(worker), name))).mode & 0o777, 0o600)
    await writeFile(join(logs.folder(worker), 'cut.new'), 'of a server that was killed while it cut')
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

test('following continues after another program has emptied the file', { timeout: patient(60_000) }, async () => {
  const { logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  const abort = new AbortController()
  try {
    await write(worker, 'a long line\n')
    const lines = follow(logs, worker, 1, abort.signal)[Symbol.asyncIterator]()
    await lines.next()
    await truncate(join(logs.folder(worker), '0.log'), 0)
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
    { weight: 1, arbitrary: fc.constantFrom('shrink', 'restart', 'half' as const) },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const files = await openFiles(60_000)
      let { logs } = files
      let position = 0
      let count = 0
      let unread = 0
      const expected: string[] = []
      const seen: PlacedLine[] = []
      const read = async (most: number) => {
        const lines = await rest(logs, worker, position, most)
        position = lines.at(-1)?.position ?? position
        seen.push(...lines)
        if (most === Number.POSITIVE_INFINITY) unread = 0
      }
      try {
        for (const one of steps) {
          // Output that is cut away unread is lost, which is another test.
          if (one === 'shrink') {
            await read(Number.POSITIVE_INFINITY)
            await logs.shrink(new Map([[worker, 9_000]]))
          } else if (one === 'restart') logs = files.restarted()
          else if (one === 'half') await files.write(worker, 'half a ')
          else if ('read' in one) await read(one.read)
          else {
            const lines = Array.from({ length: one.lines }, (_, n) =>
              n % 7 === 3 ? sdk(count++) : `l${count++} ${'x'.repeat(one.wide ? 400 : 3)}`,
            )
            const text = `${lines.join('\n')}\n`
            unread += text.length
            if (unread > 40_000) await read(Number.POSITIVE_INFINITY)
            await files.write(worker, text)
            expected.push(...lines)
          }
        }
        await read(Number.POSITIVE_INFINITY)
        const numbers = seen.flatMap(({ line }) => /(?:^|half a |INFO )[ls](\d+)/.exec(line)?.[1] ?? [])
        const whole = Array.from({ length: count }, (_, n) => String(n))
        // A message behind half a line is not a message.
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
    await utimes(join(folder, 'logs', 'a', '0.log'), lateMs / 1000, lateMs / 1000)
    const [, two] = await rest(restarted(), worker, 0)
    assert.equal(two!.tsMs, one!.tsMs, 'time does not go back')
    await write(worker, 'three\n')
    const aheadMs = startMs + 3_600_000
    await utimes(join(folder, 'logs', 'a', '0.log'), aheadMs / 1000, aheadMs / 1000)
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
    logs.mark(worker, 'begin')
    const markedMs = systemClock.now()
    await write(worker, 'behind\n')
    // The time of a file is coarse: it may be before the mark.
    await utimes(join(folder, 'logs', 'a', '0.log'), startMs / 1000 - 1, startMs / 1000 - 1)
    logs.mark('without output' as WorkerId, 'begin')
    while (systemClock.now() <= markedMs + 1);
    const [before, behind] = await rest(logs, worker, 0)
    assert.ok(before!.tsMs <= markedMs, `${before!.tsMs} is not in front of ${markedMs}`)
    assert.ok(behind!.tsMs > before!.tsMs, `${behind!.tsMs} is not behind ${before!.tsMs}`)
    assert.ok(behind!.tsMs > beforeMarkMs, `${behind!.tsMs} is not behind ${beforeMarkMs}`)
  } finally {
    await close()
  }
})

test('the marks of a worker without output list no folder after the first one', async t => {
  const { logs, write, close } = await openFiles()
  const worker = 'silent' as WorkerId
  logs.mark(worker, 'begin')
  const list = t.mock.method(fs, 'readdirSync')
  syncBuiltinESMExports()
  t.after(() => {
    list.mock.restore()
    syncBuiltinESMExports()
  })
  for (let job = 0; job < 10; job += 1) for (const moment of ['begin', 'end'] as const) logs.mark(worker, moment)
  assert.equal(list.mock.callCount(), 0)
  await write(worker, 'a line\n')
  assert.equal((await logs.tail(worker, 10)).length, 1)
  await close()
})

test('what arrives soon after the end of a job counts as printed before it, unless another job has begun', async () => {
  const { logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  try {
    await write(worker, 'loading\n')
    logs.mark(worker, 'begin')
    logs.mark(worker, 'end')
    const endedMs = systemClock.now()
    while (systemClock.now() <= endedMs + 1);
    await write(worker, 'of the first job\n')
    logs.mark(worker, 'begin')
    while (systemClock.now() <= endedMs + 3);
    await write(worker, 'of the second job\n')
    const [, first, second] = await rest(logs, worker, 0)
    assert.ok(first!.tsMs <= endedMs, `${first!.tsMs} is behind ${endedMs}`)
    assert.ok(second!.tsMs > endedMs, `${second!.tsMs} is not behind ${endedMs}`)
  } finally {
    await close()
  }
})

test('a server that is killed in the middle of a cut loses and doubles nothing', async () => {
  const worker = 'a' as WorkerId
  const text = Array.from({ length: 3_000 }, (_, n) => `line ${n}`)
  const { logs, restarted, write, close } = await openFiles()
  try {
    await write(worker, `${text.join('\n')}\n`)
    const before = await rest(logs, worker, 0)
    const from = before[2_000]!.position
    const file = join(logs.folder(worker), '0.log')
    await writeFile(join(logs.folder(worker), `${from}.log`), (await readFile(file)).subarray(from))
    assert.deepEqual(await rest(restarted(), worker, 0), before)
    await rm(file)
    await write(worker, 'more\n')
    for (const next of [logs, restarted()]) {
      assert.deepEqual(
        (await rest(next, worker, 0)).map(({ line }) => line),
        [...text.slice(2_001), 'more'],
      )
    }
  } finally {
    await close()
  }
})
