import assert from 'node:assert/strict'
import type { ClockMark } from '../../src/ports/clock.ts'
import { type Cases, DONE, E1, jobId, T0, W1, type World } from './store-world.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

function markAt(nowMs: number, changes: Partial<ClockMark> = {}): ClockMark {
  return { boot: 'boot-1', sinceBootMs: 5_000, nowMs, step: null, ...changes }
}

/** The server's time, and what moves with it. */
export const clockCases: Cases = {
  'the time is kept with its step, and a database with a clock says how long ago': async ({ store: { clock } }) => {
    assert.equal(await clock.read(), null)
    await clock.keep(markAt(T0))
    await clock.keep(markAt(T0 + 7, { step: { byMs: -HOUR_MS, sinceMs: T0 + 3 } }))
    const { databaseAgoMs, ...kept } = (await clock.read())!
    const more = { stepSinceMs: T0 + 3, heldUntilMs: null, isAccepted: false }
    assert.deepEqual(kept, { boot: 'boot-1', sinceBootMs: 5_000, nowMs: T0 + 7, ...more })
    assert.ok(databaseAgoMs === null || (databaseAgoMs >= 0 && databaseAgoMs < 60_000))
    await clock.accept(true)
    await clock.keep(markAt(T0 + 9))
    assert.deepEqual([(await clock.read())?.isAccepted, (await clock.read())?.stepSinceMs], [true, null])
  },

  'what would be removed before an instant stays until then, and nothing ends earlier': async world => {
    const { store } = world
    await store.clock.keep(markAt(T0))
    await world.job('short', { expiresAtMs: T0 + 5 })
    await world.job('long', { expiresAtMs: T0 + 9 * DAY_MS })
    await store.clock.hold(T0 + DAY_MS)
    const ends = async (id: string) => (await store.jobs.find(E1, jobId(id), T0))?.expiresAtMs
    assert.deepEqual([await ends('short'), await ends('long')], [T0 + DAY_MS, T0 + 9 * DAY_MS])
    assert.equal((await store.clock.read())?.heldUntilMs, T0 + DAY_MS)
    await store.clock.endHold()
    assert.equal((await store.clock.read())?.heldUntilMs, null)
  },

  ...Object.fromEntries(
    [400 * DAY_MS, -2 * HOUR_MS].map(byMs => [
      `a time that moves by ${byMs} ms takes with it what waits and runs, in its order`,
      async (world: World) => {
        const { store } = world
        await store.clock.keep(markAt(T0))
        await store.clock.accept(true)
        await world.worker()
        for (const [at, id] of ['done', 'running', 'first', 'second'].entries())
          await world.job(id, { position: T0 * 1024 + at })
        await world.claim(W1, 2, T0 + 10)
        await world.finish('done', W1, DONE, T0 + 20)
        const ids = ['done', 'running', 'first', 'second']
        const before = await Promise.all(ids.map(id => world.read(id, T0 + 20)))
        await store.clock.adopt(byMs, markAt(T0 + 20 + byMs))
        const after = await Promise.all(ids.map(id => store.jobs.find(E1, jobId(id), 0)))
        for (const [at, { expiresAtMs, queuedAtMs, startedAtMs }] of before.entries()) {
          const expected = ids[at] === 'done' ? expiresAtMs + Math.min(0, byMs) : expiresAtMs + byMs
          assert.equal(after[at]?.expiresAtMs, expected, `the end of ${ids[at]}`)
          if (ids[at] === 'done') continue
          assert.equal(after[at]?.queuedAtMs, queuedAtMs + byMs)
          assert.equal(after[at]?.startedAtMs ?? null, startedAtMs === null ? null : startedAtMs + byMs)
        }
        const { executionTimeoutMs } = before[1]!
        const overdue = (atMs: number) => store.jobOutcomes.timeOutOverdue(atMs + byMs, 9)
        assert.deepEqual(await overdue(T0 + 9 + executionTimeoutMs), [])
        assert.equal((await overdue(T0 + 11 + executionTimeoutMs)).length, 1)
        await world.job('third', { position: (T0 + byMs + 30) * 1024, expiresAtMs: T0 + byMs + DAY_MS })
        const taken = await world.claim(W1, 3, T0 + 30 + byMs)
        assert.deepEqual(
          taken.map(({ id }) => id),
          ['first', 'second', 'third'],
        )
        assert.equal((await world.readWorker()).createdAtMs, T0 + byMs)
        const { nowMs, isAccepted } = (await store.clock.read())!
        assert.deepEqual([nowMs, isAccepted], [T0 + 20 + byMs, false])
      },
    ]),
  ),
}
