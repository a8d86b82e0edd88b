import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockLines } from '../../src/cli/commands/clock.ts'

const behind = { now: '2026-01-31T12:00:00.000Z', machine: '2026-01-31T10:00:00.000Z', stepMs: -7_200_000 }

test('a step is shown with the time at which it is taken, and with the command that takes it', () => {
  const lines = clockLines({ ...behind, takenAt: '2026-02-01T12:00:00.000Z', heldUntil: null })
  assert.equal(lines[2], 'The clock of the machine is 2 h behind the time of the server.')
  assert.equal(lines[3], 'The server takes its time at 2026-02-01T12:00:00.000Z, or at once by: runyard clock accept')
})

test('a step that was accepted asks for nothing more', () => {
  const lines = clockLines({ ...behind, takenAt: behind.now, heldUntil: null })
  assert.equal(lines[3], 'The server takes its time now.')
})
