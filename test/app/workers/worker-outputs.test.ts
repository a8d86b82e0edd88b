/** Outputs of workers on the disk: within the limits of accounts, without a look at thousands that no longer grow. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_LIMITS } from '../../../src/core/accounts/quotas.ts'
import type { OwnerId, WorkerId } from '../../../src/core/ids.ts'
import type { RecordedWorker, Store } from '../../../src/ports/store/store.ts'
import type { WorkerLogs } from '../../../src/ports/worker-logs.ts'
import { WorkerOutputs } from '../../../src/services/workers/worker-outputs.ts'

const MB = 1024 * 1024
const SECOND = 1_000
const T0 = 1_800_000_000_000
const OWNER = 'limited' as OwnerId
const w = (text: string | number) => `w${text}` as WorkerId

/** Records and outputs of workers, with counts of what is looked at. */
class World {
  readonly records = new Map<WorkerId, RecordedWorker>()
  readonly bytes = new Map<WorkerId, number>()
  readonly outputs: WorkerOutputs
  read = 0
  measured = 0
  noted: ReadonlyMap<OwnerId, number> = new Map()

  constructor(logsMb: number | null = null) {
    const counted = (rows: RecordedWorker[]) => {
      this.read += rows.length
      return rows
    }
    const ordered = () => [...this.records.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
    const workers = {
      known: async (after: string, limit: number) =>
        counted(
          ordered()
            .filter(({ id }) => id > after)
            .slice(0, limit),
        ),
      endedSince: async (sinceMs: number) =>
        counted(ordered().filter(({ exitedAtMs }) => exitedAtMs !== null && exitedAtMs >= sinceMs)),
    }
    const logs = {
      trim: async (keep: ReadonlySet<WorkerId>) => {
        for (const id of this.bytes.keys()) if (!keep.has(id)) this.bytes.delete(id)
        this.measured += this.bytes.size
        return new Map(this.bytes)
      },
      measure: async (ids: readonly WorkerId[]) => {
        this.measured += ids.length
        return new Map(ids.map(id => [id, this.bytes.get(id) ?? 0]))
      },
      shrink: async (limits: ReadonlyMap<WorkerId, number>) => {
        for (const [id, most] of limits) {
          if (most === 0) this.bytes.delete(id)
          else this.bytes.set(id, Math.min(most, this.bytes.get(id) ?? 0))
        }
      },
    }
    const ports = { store: { workers } as unknown as Store, logs: logs as unknown as WorkerLogs }
    this.outputs = new WorkerOutputs(ports, {
      effectiveLimits: () => ({ ...NO_LIMITS, logsMb }),
      noteLogs: bytes => {
        this.noted = bytes
      },
    })
  }

  worker(id: WorkerId, bytes: number, exitedAtMs: number | null = null): void {
    this.records.set(id, { id, owner: OWNER, exitedAtMs })
    this.bytes.set(id, bytes)
  }

  step(atMs: number): Promise<void> {
    return this.outputs.step(
      [...this.records.values()].filter(({ exitedAtMs }) => exitedAtMs === null),
      atMs,
    )
  }
}

test('between two looks at all, only running workers and those that ended lately are looked at', async () => {
  const counts = []
  for (const ended of [1, 5_000]) {
    const world = new World()
    for (let n = 0; n < ended; n += 1) world.worker(w(n), 10, T0 - 3_600_000)
    world.worker(w('running'), 10)
    world.worker(w('late'), 10, T0 - SECOND)
    await world.step(T0)
    assert.deepEqual([world.read, world.measured], [ended + 2, ended + 2])
    world.read = 0
    world.measured = 0
    for (let at = 2; at <= 58; at += 2) await world.step(T0 + at * SECOND)
    counts.push([world.read, world.measured])
    assert.equal(world.noted.get(OWNER), 10 * (ended + 2))
    await world.step(T0 + 60 * SECOND)
    assert.ok(world.read > ended, 'all once in a minute')
  }
  assert.deepEqual(counts, [
    [29, 58],
    [29, 58],
  ])
})

test('growth of a running worker makes room of the outputs that ended longest ago, and then of its own', async () => {
  const world = new World(1)
  world.worker(w('older'), 300_000, T0 - 9_000 * SECOND)
  world.worker(w('newer'), 300_000, T0 - 8_000 * SECOND)
  world.worker(w('running'), 300_000)
  await world.step(T0)
  assert.equal(world.bytes.size, 3)
  world.bytes.set(w('running'), 600_000)
  await world.step(T0 + 2 * SECOND)
  assert.deepEqual([...world.bytes.keys()], [w('newer'), w('running')])
  world.worker(w('short'), 900_000, T0 + 3 * SECOND)
  await world.step(T0 + 4 * SECOND)
  assert.deepEqual([...world.bytes], [[w('running'), 600_000]])
  world.bytes.set(w('running'), 3 * MB)
  await world.step(T0 + 6 * SECOND)
  assert.deepEqual([...world.bytes], [[w('running'), MB]])
  assert.equal(world.noted.get(OWNER), MB)
})

test('the output of a removed record goes with it, and where the answer was lost, by the next look', async () => {
  const world = new World()
  for (const id of ['a', 'b', 'c']) world.worker(w(id), 10, T0 - 9_000 * SECOND)
  await world.step(T0)
  const remove = async (id: WorkerId) => {
    world.records.delete(id)
    return [id]
  }
  await world.outputs.removing(() => remove(w('a')))
  assert.deepEqual([...world.bytes.keys()], [w('b'), w('c')])
  await world.step(T0 + 2 * SECOND)
  assert.equal(world.outputs.isSettled, true)
  assert.equal(world.noted.get(OWNER), 20)
  await assert.rejects(
    world.outputs.removing(async () => {
      await remove(w('b'))
      throw new Error('the answer was lost')
    }),
  )
  assert.equal(world.outputs.isSettled, false)
  await world.step(T0 + 4 * SECOND)
  assert.deepEqual([...world.bytes.keys()], [w('c')])
  await world.step(T0 + 6 * SECOND)
  assert.equal(world.outputs.isSettled, true)
})

test('while records cannot be removed, all outputs are not looked at again and again', async () => {
  const world = new World()
  for (let n = 0; n < 1_000; n += 1) world.worker(w(n), 10, T0 - 9_000 * SECOND)
  await world.step(T0)
  world.read = 0
  const fail = async () => {
    world.records.delete(world.records.keys().next().value!)
    throw new Error('the disk is full')
  }
  for (let at = 2; at < 60; at += 2) {
    await assert.rejects(world.outputs.removing(fail))
    await world.step(T0 + at * SECOND)
  }
  assert.equal(world.read, 999)
  await world.outputs.removing(async () => [])
  await world.step(T0 + 60 * SECOND)
  assert.equal(world.bytes.size, world.records.size)
})

test('a clock that is set back does not put off the look at all', async () => {
  const world = new World()
  world.worker(w('a'), 10, T0 - 9_000 * SECOND)
  await world.step(T0)
  world.records.delete(w('a'))
  await world.step(T0 - 3_600 * SECOND)
  assert.deepEqual([...world.bytes.keys()], [])
})
