import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import {
  createDurably,
  ensureFolder,
  removeDurably,
  touchDurably,
  writeDurably,
  writeDurablyOrOver,
} from '../../src/disk/durable-file.ts'
import { readRelayInfo, writeRelayInfo } from '../../src/relay/relay-file.ts'
import { ensureInstallation, readInstallation } from '../../src/system/coordination/identities.ts'
import { keepApiKey } from '../../src/system/keys/api-key.ts'
import { beginRotation, endRotation, loadMasterKeys } from '../../src/system/keys/master-key.ts'
import { withPowerCut } from '../support/forgetful-disk.ts'
import { mountSmallDisk } from '../support/small-disk.ts'

const scratch = mkdtempSync(join(tmpdir(), 'runyard-durable-'))
after(() => rmSync(scratch, { recursive: true, force: true }))

let made = 0
function newRoot(): string {
  made += 1
  const root = join(scratch, `disk-${made}`)
  mkdirSync(root)
  return root
}

/** Cuts the power at every step of `run`, and looks at what is left each time. */
function atEveryCut(run: (folder: string) => void, look: (folder: string) => void): void {
  for (let cutAt = 1; ; cutAt += 1) {
    const root = newRoot()
    const { left, done } = withPowerCut(root, cutAt, () => run(join(root, 'above/data')))
    look(join(left, 'above/data'))
    if (!done) continue
    assert.ok(cutAt > 5, 'there were steps to cut')
    return
  }
}

test('whenever the power goes, the API key that a database knows is the one of the file', () => {
  // The database forgets nothing that it has committed.
  let known: string | null = null
  atEveryCut(
    folder => {
      known = null
      ensureFolder(folder)
      known = keepApiKey(join(folder, 'api-key'), null)
      known = keepApiKey(join(folder, 'api-key'), 'rpa_given_by_the_test')
    },
    folder => {
      ensureFolder(folder)
      const key = keepApiKey(join(folder, 'api-key'), null)
      if (known !== null) assert.ok(key === known || key === 'rpa_given_by_the_test', `${known} became ${key}`)
      assert.match(key, /^rpa_./)
    },
  )
})

test('whenever the power goes, also in a rotation, what was sealed can be opened', () => {
  let sealedWith: Buffer[] = []
  atEveryCut(
    folder => {
      sealedWith = []
      const file = join(folder, 'encryption-key')
      ensureFolder(folder)
      const [first] = loadMasterKeys(file, [])
      sealedWith.push(first)
      const [second] = beginRotation(file)
      sealedWith.push(second)
      sealedWith.shift()
      endRotation(file)
    },
    folder => {
      ensureFolder(folder)
      const keys = loadMasterKeys(join(folder, 'encryption-key'), [])
      for (const sealed of sealedWith) assert.ok(keys.some(key => key.equals(sealed)))
    },
  )
})

test('what was written is there after a power cut', () => {
  const root = newRoot()
  const identity = { pid: 2, startTime: '1', bootId: 'boot' }
  const { left } = withPowerCut(root, Number.POSITIVE_INFINITY, () => {
    const data = join(root, 'data')
    ensureFolder(data)
    ensureInstallation(data)
    writeRelayInfo(data, { identity, port: 1, secret: 's', version: 2 })
    touchDurably(join(data, 'empty'))
    writeDurably(join(data, 'gone'), 'x')
    removeDurably(join(data, 'gone'))
  })
  const data = join(left, 'data')
  assert.match(readInstallation(data) ?? '', /^[0-9a-f]{12}$/)
  assert.deepEqual(readRelayInfo(data)?.identity, identity)
  assert.ok(existsSync(join(data, 'empty')))
  assert.ok(!existsSync(join(data, 'gone')))
})

test('files are for their owner alone, and leftovers of a process that died do no harm', () => {
  const folder = newRoot()
  const file = join(folder, 'secret')
  writeDurably(`${file}.new`, 'left over')
  writeDurably(file, 'one')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  assert.equal(createDurably(file, 'two'), false)
  assert.equal(readFileSync(file, 'utf8'), 'one')
  ensureFolder(join(folder, 'a/b'))
  assert.equal(statSync(join(folder, 'a')).mode & 0o777, 0o700)
})

test('a file for which the disk has no room leaves the one before, and nothing else that takes room', t => {
  const disk = mountSmallDisk(1)
  if (disk === null) return t.skip('this user mounts no file system')
  t.after(() => disk.close())
  const file = join(disk.folder, 'secret')
  writeDurably(file, 'one')
  disk.fill()
  assert.throws(() => writeDurably(file, 'two'), { code: 'ENOSPC' })
  assert.throws(() => createDurably(join(disk.folder, 'other'), 'two'), { code: 'ENOSPC' })
  assert.deepEqual([readFileSync(file, 'utf8'), readdirSync(disk.folder).sort()], ['one', ['filler', 'secret']])
  writeDurablyOrOver(file, 'it', join(disk.folder, 'draft'))
  assert.deepEqual([readFileSync(file, 'utf8'), readdirSync(disk.folder).sort()], ['it', ['filler', 'secret']])
  disk.empty()
  writeDurably(file, 'two')
  assert.equal(readFileSync(file, 'utf8'), 'two')
})
