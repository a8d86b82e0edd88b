import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { machineIdentity } from '../../src/system/coordination/identities.ts'

test('a machine has one name, which does not reveal its id; the first file that has one counts', context => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-machine-'))
  context.after(() => rmSync(folder, { recursive: true }))
  const fileOf = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    return join(folder, name)
  }
  const [one, two] = [fileOf('one', 'aaaa\n'), fileOf('two', 'bbbb\n')]
  const [empty, missing] = [fileOf('empty', '\n'), join(folder, 'missing')]
  const name = machineIdentity([one, two])
  assert.match(name, /^[0-9a-f]{16}$/)
  assert.deepEqual([machineIdentity([one]), machineIdentity([missing, empty, one])], [name, name])
  assert.notEqual(machineIdentity([two]), name)
  assert.match(machineIdentity([missing]), /^[0-9a-f]{16}$/)
  assert.equal(machineIdentity(), machineIdentity())
})
