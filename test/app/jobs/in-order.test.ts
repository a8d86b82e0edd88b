/** A body that takes long to read keeps its place before later ones. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InOrder } from '../../../src/services/in-order.ts'

test('operations of a key are done in order, and other keys do not wait', async () => {
  const order = new InOrder<string>()
  const done: string[] = []
  const slow = Promise.withResolvers<void>()
  const work = (name: string, until?: Promise<void>) => async () => {
    await until
    done.push(name)
    return name
  }
  const all = [
    order.run('a', true, work('large', slow.promise)),
    order.run('a', false, work('small')),
    order.run('a', true, work('large again')),
    order.run('b', false, work('of another job')),
  ]
  await all[3]
  assert.deepEqual(done, ['of another job'])
  slow.resolve()
  assert.deepEqual(await Promise.all(all), ['large', 'small', 'large again', 'of another job'])
  assert.deepEqual(done, ['of another job', 'large', 'small', 'large again'])
})

test('a failed operation does not block those after it', async () => {
  const order = new InOrder<string>()
  const failed = order.run('a', true, () => Promise.reject(new Error('the thread died')))
  const next = order.run('a', false, async () => 'next')
  await assert.rejects(failed, /the thread died/)
  assert.equal(await next, 'next')
})

test('small operations begin at once, with nothing in between', () => {
  const order = new InOrder<string>()
  const begun: number[] = []
  for (const n of [1, 2]) void order.run('a', false, async () => void begun.push(n))
  assert.deepEqual(begun, [1, 2])
})
