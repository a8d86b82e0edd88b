/** The file of a backup: what was written is read, and nothing else is taken for one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type BackupHeader,
  type BackupPiece,
  readBackup,
  writeBackup,
} from '../../../src/system/backup/backup-format.ts'
import { openKeys, sealKeys } from '../../../src/system/backup/key-seal.ts'

const header: BackupHeader = {
  version: '1.2.3',
  schema: 1,
  createdAt: '2026-01-01T00:00:00.000Z',
  keys: 'sealed',
  keyIsGiven: false,
  postgres: null,
  bytes: 12,
}
const pieces: readonly BackupPiece[] = [
  { name: 'a', bytes: Buffer.from('one\n') },
  { name: 'a', bytes: Buffer.from('{"sha256":"no"}\n') },
  { name: 'b', bytes: Buffer.alloc(3_000, 7) },
]

async function written(): Promise<Buffer> {
  const each = async function* () {
    yield* pieces
  }
  return Buffer.concat(await Array.fromAsync(writeBackup(header, each())))
}

/** Reads bytes that come in pieces of some size. */
async function read(bytes: Buffer, size: number): Promise<{ header: BackupHeader; pieces: BackupPiece[] }> {
  const source = async function* () {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
  }
  const found = await readBackup(source())
  return { header: found.header, pieces: await Array.fromAsync(found.pieces) }
}

test('what was written is read, however it is cut on the way', async () => {
  const bytes = await written()
  for (const size of [1, 7, 1_000, bytes.length]) assert.deepEqual(await read(bytes, size), { header, pieces })
})

test('a backup that was cut off anywhere is refused', async () => {
  const bytes = await written()
  for (let end = 0; end < bytes.length; end += 13) {
    await assert.rejects(read(bytes.subarray(0, end), 512), /the backup cannot be used: it is (cut off|no backup)/)
  }
})

test('a changed byte anywhere is found', async () => {
  const bytes = await written()
  for (let at = 0; at < bytes.length - 1; at += 11) {
    const changed = Buffer.from(bytes)
    changed[at] = changed[at]! ^ 1
    await assert.rejects(read(changed, 512), /the backup cannot be used/)
  }
  await assert.rejects(read(Buffer.concat([bytes, Buffer.from('x')]), 512), /something follows its end/)
})

test('keys open with their passphrase alone', async () => {
  const keys = { 'encryption-key': Buffer.alloc(32, 1), 'api-key': Buffer.from('rpa_key') }
  const text = await sealKeys(keys, 'correct horse battery')
  assert.ok(!text.includes('rpa_key'))
  assert.deepEqual(await openKeys(text, 'correct horse battery'), keys)
  await assert.rejects(openKeys(text, 'correct horse staple'), /the passphrase is another one/)
  await assert.rejects(openKeys('{}', 'correct horse battery'), /cannot be opened/)
})
