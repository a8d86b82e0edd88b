/** Files that a backup of a data directory contains or leaves out. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { readBackup } from '../../../src/system/backup/backup-format.ts'
import { createBackups } from '../../../src/system/backup/data-dir-backups.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-backup-'))
after(() => rmSync(root, { recursive: true, force: true }))

function openBackups(name: string, postgres: string | null = null) {
  const dataDir = join(root, name)
  mkdirSync(join(dataDir, 'logs'), { recursive: true })
  for (const [file, text] of Object.entries({
    store: 'the embedded database\n',
    installation: 'abcdef\n',
    'encryption-key': 'k'.repeat(32),
    'api-key': 'rpa_key\n',
    'logs/one.log': 'said\n',
    'logs/one.log.at': 'a 0 0 0\n',
  })) {
    writeFileSync(join(dataDir, file), text)
  }
  const options = { dataDir, version: '1.0.0', postgres, keyIsGiven: false, settings: { port: 1 }, now: () => 0 }
  return { dataDir, backups: createBackups(options) }
}

async function readContent(pieces: AsyncIterable<Uint8Array>): Promise<Record<string, string>> {
  const content: Record<string, string> = {}
  for await (const { name, bytes } of (await readBackup(pieces)).pieces) {
    content[name] = (content[name] ?? '') + Buffer.from(bytes).toString('latin1')
  }
  return content
}

test('it has the database, notes and settings, logs on request, and nothing of the keys unless they are sealed', async () => {
  const { dataDir, backups } = openBackups('embedded')
  const store = await openSqliteStore({ file: join(dataDir, 'runyard.sqlite'), host: 'inline' })
  const plain = await backups.make({ passphrase: null, withLogs: false })
  await assert.rejects(backups.make({ passphrase: null, withLogs: false }), /another backup is being made/)
  const content = await readContent(plain.pieces)
  assert.deepEqual(Object.keys(content).sort(), ['runyard.sqlite', 'settings.json', 'store'])
  assert.match(content['runyard.sqlite'] ?? '', /^SQLite format 3/)
  await plain.drop()
  const full = await backups.make({ passphrase: 'correct horse battery', withLogs: true })
  const all = await readContent(full.pieces)
  await full.drop()
  const more = ['keys.sealed', 'logs/one.log', 'logs/one.log.at']
  assert.deepEqual(Object.keys(all).sort(), [...more, 'runyard.sqlite', 'settings.json', 'store'])
  assert.equal(all['logs/one.log'], 'said\n')
  assert.ok(!existsSync(join(dataDir, 'backup')))
  await store.close()
})

test('a database that cannot be copied fails the backup, and the next one is made', async () => {
  const { dataDir, backups } = openBackups('damaged')
  writeFileSync(join(dataDir, 'runyard.sqlite'), 'no database'.repeat(1_000))
  for (const _ of [1, 2]) {
    await assert.rejects(backups.make({ passphrase: null, withLogs: false }), /is damaged \(file is not a database\)/)
  }
})

test('on PostgreSQL it has no database, and says where that is', async () => {
  const { backups } = openBackups('postgres', 'postgres://me@db/runyard')
  const { pieces } = await backups.make({ passphrase: null, withLogs: false })
  const { header } = await readBackup(pieces)
  assert.deepEqual([header.postgres, header.schema], ['postgres://me@db/runyard', null])
})
