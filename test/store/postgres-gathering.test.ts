/** Calls of one operation become statements of several calls. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallGatherer } from '../../src/store/engines/postgres-gathering.ts'
import { unavailable } from '../../src/store/engines/sqlite-errors.ts'

/** A gathering whose statements end when the test says so; each call has a number, and its result is that number. */
function opened() {
  const statements: { readonly calls: number[]; end(): void; fail(error: Error): void }[] = []
  const alone: number[] = []
  const gathering = new CallGatherer({ size: (n: number) => (n < 0 ? null : n), statement: {} } as never, {
    together: calls => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly unknown[]>()
      const numbers = calls.map(([n]) => n as number)
      statements.push({ calls: numbers, end: () => resolve(numbers), fail: reject })
      return promise
    },
    alone: async ([n]) => {
      alone.push(n as number)
      if (n === 13) throw new Error('bad luck')
      return n
    },
    isUnavailable: error => (error as { code?: string }).code === 'unavailable',
  })
  return { statements, alone, call: (n: number) => gathering.call([n]) }
}

test('calls that come while a statement is under way share the next one', async () => {
  const { statements, alone, call } = opened()
  const results = [1, 2, 3, 4, -1].map(call)
  assert.deepEqual([statements.map(({ calls }) => calls), alone], [[[1]], [-1]])
  statements[0]!.end()
  assert.equal(await results[0], 1)
  await new Promise(setImmediate)
  assert.deepEqual(statements[1]?.calls, [2, 3, 4])
  statements[1]!.end()
  assert.deepEqual(await Promise.all(results), [1, 2, 3, 4, -1])
})

test('where many calls wait, up to three statements are under way', async () => {
  const { statements, call } = opened()
  const results = Array.from({ length: 200 }, (_, n) => n).map(call)
  assert.deepEqual(
    statements.map(({ calls }) => calls.length),
    [1, 32, 32],
  )
  statements[1]!.end()
  await new Promise(setImmediate)
  assert.deepEqual(statements[3]?.calls.length, 135)
  for (const { end } of statements) end()
  assert.deepEqual(await Promise.all(results), [...results.keys()])
})

test('a statement has at most 256 calls and a megabyte', async () => {
  const { statements, call } = opened()
  const results = Array.from({ length: 1 + 2 * 32 }, () => 10).map(call)
  results.push(...[...Array.from({ length: 300 }, () => 10), 600_000, 600_000, 5_000_000].map(call))
  for (let at = 0; at < statements.length; at += 1) {
    statements[at]!.end()
    await new Promise(setImmediate)
  }
  await Promise.all(results)
  assert.deepEqual(
    statements.slice(3).map(({ calls }) => calls.length),
    [256, 45, 1, 1],
  )
})

test('calls of a statement that fails run alone, but not when it may have happened', async () => {
  const { statements, alone, call } = opened()
  const first = call(1)
  const [one, unlucky] = [4, 13].map(call)
  statements[0]!.fail(unavailable('it is away'))
  await assert.rejects(first, { code: 'unavailable' })
  await new Promise(setImmediate)
  statements[1]!.fail(new Error('a constraint'))
  assert.equal(await one, 4)
  await assert.rejects(unlucky!, /bad luck/)
  assert.deepEqual(alone, [4, 13])
})

test('a call waits for a second for a statement that hangs, and at most five for a place', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { statements, call } = opened()
  const hanging = call(1)
  const others = [2, 3].map(async n => {
    const result = call(n)
    t.mock.timers.tick(1_000)
    return result
  })
  assert.deepEqual(
    statements.map(({ calls }) => calls),
    [[1], [2], [3]],
  )
  const late = call(4)
  for (let second = 0; second < 4; second += 1) t.mock.timers.tick(1_000)
  const later = call(5)
  t.mock.timers.tick(1_000)
  await assert.rejects(late, { code: 'unavailable', message: /PostgreSQL does not answer in time/ })
  for (const { end } of statements) end()
  await Promise.all([hanging, ...others])
  await new Promise(setImmediate)
  assert.deepEqual(statements[3]?.calls, [5])
  statements[3]!.end()
  assert.equal(await later, 5)
})
