import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { IdleConnections, openConnection } from '../../src/server/idle-connections.ts'

test('the longest idle connection is the first, whichever of the others left and came back', () => {
  const idle = new IdleConnections()
  const [a, b, c] = [openConnection(new Socket()), openConnection(new Socket()), openConnection(new Socket())]
  assert.equal(idle.first, null)
  for (const [at, connection] of [a, b, c].entries()) idle.add(connection, at)
  assert.deepEqual([idle.first, idle.all()], [a, [a, b, c]])
  idle.remove(b)
  assert.deepEqual([b.idleSinceMs, idle.all()], [null, [a, c]])
  idle.remove(a)
  assert.deepEqual([idle.first, idle.all()], [c, [c]])
  idle.add(a, 3)
  assert.deepEqual([idle.all(), a.idleSinceMs], [[c, a], 3])
  idle.remove(c)
  idle.remove(a)
  assert.deepEqual([idle.first, idle.all()], [null, []])
})

test('a connection that is not idle is not removed a second time', () => {
  const idle = new IdleConnections()
  const [a, b] = [openConnection(new Socket()), openConnection(new Socket())]
  idle.remove(a)
  idle.add(a, 1)
  idle.add(b, 2)
  idle.remove(a)
  idle.remove(a)
  assert.deepEqual(idle.all(), [b])
})
