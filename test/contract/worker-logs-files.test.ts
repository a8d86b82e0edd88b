import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { WorkerId } from '../../src/core/ids.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createWorkerLogs } from '../../src/system/worker-logs.ts'
import { plain, workerLogsContract } from './worker-logs.ts'

workerLogsContract('file', openFiles)

async function openFiles() {
  const folder = await mkdtemp(join(tmpdir(), 'runyard-'))
  let aheadMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const logs = createWorkerLogs({ folder: join(folder, 'logs'), clock, maxBytes: 100_000 })
  return {
    folder,
    logs,
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
    assert.deepEqual((await readdir(join(folder, 'logs'))).sort(), ['a.log', 'a.log.1'])
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

test('following goes on after somebody else has emptied the file', { timeout: 60_000 }, async () => {
  const { logs, write, close } = await openFiles()
  const worker = 'a' as WorkerId
  const abort = new AbortController()
  try {
    await write(worker, 'a long line\n')
    const lines = logs.follow(worker, 1, abort.signal)[Symbol.asyncIterator]()
    await lines.next()
    await truncate(logs.path(worker), 0)
    await write(worker, 'new\n')
    assert.deepEqual((await lines.next()).value, plain('new')[0])
  } finally {
    abort.abort()
    await close()
  }
})
