/** Counts of requests in memory that threads share. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { NOT_EJECTED } from '../../src/core/balancing/outlier-ejection.ts'
import { WaitingWords, WorkerSlots, workerSlotBytes } from '../../src/gateway/threads/worker-slots.ts'

const OPEN = { isOpen: true, limit: null, isWatched: false, ejection: NOT_EJECTED }

test('a slot counts requests up to its limit, and none while it is closed', () => {
  const slots = new WorkerSlots(new SharedArrayBuffer(workerSlotBytes(2)))
  const slot = slots.take(0)!
  assert.equal(slots.begin(slot, 1, true), false, 'it is not open yet')
  slots.rule(slot, { ...OPEN, limit: 2 })
  assert.deepEqual(
    [1, 2, 3].map(() => slots.begin(slot, 5, true)),
    [true, true, false],
  )
  assert.equal(slots.end(slot, 9), 1)
  assert.equal(slots.busyMs(slot, 10), 5)
  assert.equal(slots.end(slot, 12), 0)
  assert.deepEqual([slots.busyMs(slot, 99), slots.idleSince(slot), slots.usedAt(slot)], [7, 12, 2])
  slots.rule(slot, { ...OPEN, ejection: { ...NOT_EJECTED, state: 'trial_due' } })
  assert.equal(slots.begin(slot, 13, true), false, 'its trial is for the deciding thread')
  assert.equal(slots.ejection(slot).state, 'trial_due')
  assert.equal(slots.begin(slot, 13, false), true)
})

test('a slot that has another worker takes no request for the one before', () => {
  const slots = new WorkerSlots(new SharedArrayBuffer(workerSlotBytes(1)))
  const before = slots.take(0)!
  slots.rule(before, OPEN)
  assert.equal(slots.take(0), null, 'there is one slot')
  slots.giveBack(before)
  const after = slots.take(0)!
  slots.rule(after, OPEN)
  assert.equal(after.at, before.at)
  assert.deepEqual([slots.begin(before, 1, true), slots.begin(after, 1, true)], [false, true])
})

test('threads that begin and end requests at once never pass the limit, and lose no count', async () => {
  const memory = new SharedArrayBuffer(workerSlotBytes(1))
  const slots = new WorkerSlots(memory)
  const slot = slots.take(0)!
  slots.rule(slot, { ...OPEN, limit: 3 })
  const program = `
    import { parentPort, workerData } from 'node:worker_threads'
    const { WorkerSlots } = await import(workerData.module)
    const slots = new WorkerSlots(workerData.memory)
    const { slot } = workerData
    let most = 0
    let begun = 0
    for (let n = 0; n < 30_000; n += 1) {
      if (!slots.begin(slot, performance.now(), true)) continue
      begun += 1
      most = Math.max(most, slots.inFlight(slot))
      if (n % 3 === 0 && slots.begin(slot, performance.now(), true)) {
        most = Math.max(most, slots.inFlight(slot))
        begun += 1
        slots.end(slot, performance.now())
      }
      slots.end(slot, performance.now())
    }
    parentPort.postMessage({ most, begun })
  `
  const module = new URL('../../src/gateway/threads/worker-slots.ts', import.meta.url).href
  const url = new URL(`data:text/javascript,${encodeURIComponent(program)}`)
  const threads = [1, 2].map(() => new Worker(url, { workerData: { memory, slot, module } }))
  const results = await Promise.all(threads.map(async thread => (await once(thread, 'message'))[0]))
  assert.ok(results.every(({ most }) => most <= 3))
  assert.equal(slots.inFlight(slot), 0)
  assert.equal(
    slots.usedAt(slot),
    results.reduce((sum, { begun }) => sum + begun, 0),
  )
})

test('a word of waiting requests is 0 for each endpoint that gets it', () => {
  const words = new WaitingWords(new SharedArrayBuffer(4))
  const word = words.take()!
  words.add(word, 2)
  assert.deepEqual([words.get(word), words.take()], [2, null])
  words.giveBack(word)
  assert.equal(words.get(words.take()!), 0)
})
