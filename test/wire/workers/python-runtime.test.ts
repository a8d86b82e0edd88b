/** The tests of the runtime for workers of RunPod's SDK 2.0, which are in Python. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { sdk2, sdk2Skip } from '../support/python.ts'

test('the runtime passes its own tests', { skip: sdk2Skip }, () => {
  const { status, stderr } = spawnSync(sdk2, ['-m', 'unittest', 'discover', '-t', '.', '-s', 'tests'], {
    cwd: join(import.meta.dirname, '../../../packages/runtime'),
    env: { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1' },
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
})
