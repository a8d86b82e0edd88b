import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../src/core/errors.ts'
import { startProblem } from '../../src/main/start-error.ts'

test('a command that ends names what nobody foresaw, and refers to no log', () => {
  const said = startProblem(new TypeError('no such table: server_clock'))
  assert.match(said, /^an internal error occurred, .*TypeError: no such table: server_clock\n +at /)
  assert.doesNotMatch(said, /server log/)
  assert.match(startProblem('thrown text'), /thrown text$/)
  const inTheWay = "EEXIST: file already exists, mkdir '/data/logs'"
  assert.equal(startProblem(Object.assign(new Error(inTheWay), { code: 'EEXIST', syscall: 'mkdir' })), inTheWay)
})

test('what was foreseen is said as it is', () => {
  assert.equal(startProblem(new AppError('unavailable', 'the store is away')), 'the store is away')
  assert.equal(
    startProblem(Object.assign(new Error('write'), { code: 'ENOSPC' })),
    'the server cannot do this now: its disk is full',
  )
})
