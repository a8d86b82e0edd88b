/** Nobody can guess the key of an operator who chose it. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cleanup.ts'
import { runCommand } from '../support/server.ts'

const WEAK = 'rpa_0123456789abcde'

test('a server does not start with a given API key of fewer than 20 characters, and does not print it', async () => {
  const given = ['serve', '--port', '0', '--docker', 'off', '--data-dir', temporaryFolder()]
  const { code, stderr } = await runCommand(given, { RUNYARD_API_KEY: WEAK })
  assert.equal(code, 64)
  assert.match(stderr, /RUNYARD_API_KEY must have 20 to 256 visible ASCII characters/)
  assert.doesNotMatch(stderr, new RegExp(WEAK))
})

test('nor with one from its data directory', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'api-key'), `${WEAK}\n`)
  const { code, stderr } = await runCommand(['serve', '--port', '0', '--docker', 'off', '--data-dir', dataDir])
  assert.equal(code, 69)
  assert.match(stderr, /the API key in .*api-key must have 20 to 256 visible ASCII characters; delete the file/)
  assert.doesNotMatch(stderr, new RegExp(WEAK))
})
