import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inheritedSocket } from '../../src/main/listening/inherited-socket.ts'

test('a socket is taken over by the process that it was meant for', () => {
  assert.equal(inheritedSocket({ LISTEN_FDS: '1', LISTEN_PID: '7' }, 7), 3)
  assert.equal(inheritedSocket({ LISTEN_FDS: '1', LISTEN_PID: '7' }, 8), null)
  assert.equal(inheritedSocket({ LISTEN_FDS: '1' }, 8), null)
  assert.equal(inheritedSocket({}, 7), null)
})

test('several sockets are refused', () => {
  assert.throws(() => inheritedSocket({ LISTEN_FDS: '2', LISTEN_PID: '7' }, 7), /2 sockets were passed on/)
})
