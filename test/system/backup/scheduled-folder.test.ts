/** The folder of scheduled backups: what is in it at each moment, and what is said when it cannot be used. */
import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import type { Backup, Backups } from '../../../src/ports/backups.ts'
import { backupName } from '../../../src/system/backup/backup-folder.ts'
import { readBackup, writeBackup } from '../../../src/system/backup/backup-format.ts'
import { createScheduledFolder, type ScheduledFolderOptions } from '../../../src/system/backup/scheduled-folder.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-scheduled-'))
after(() => rmSync(root, { recursive: true, force: true }))

const T0 = Date.UTC(2026, 0, 1)
const HEADER = {
  version: '1.0.0',
  schema: 1,
  createdAt: '',
  keys: 'left out',
  keyIsGiven: false,
  postgres: null,
  bytes: 4,
} as const
const never = new AbortController().signal

/** A folder, and backups whose pieces a test gives. */
function openFolder(name: string, changes: Partial<ScheduledFolderOptions> = {}) {
  const path = join(root, name)
  mkdirSync(path)
  const state = { nowMs: T0, dropped: 0, more: async () => {} }
  const backups: Backups = {
    async make(): Promise<Backup> {
      const pieces = async function* () {
        yield { name: 'store', bytes: Buffer.from('text') }
        await state.more()
      }
      const drop = async () => {
        state.dropped += 1
      }
      return { pieces: writeBackup(HEADER, pieces()), drop }
    },
  }
  const options = { path, everyMs: 1_000, keep: 2, wish: { passphrase: null, withLogs: false }, backups, dump: null }
  let made = 0
  const unique = () => {
    made += 1
    return String(made)
  }
  const folder = createScheduledFolder({ ...options, now: () => state.nowMs, unique, ...changes })
  return { path, state, folder, names: () => readdirSync(path).sort() }
}

test('a backup has its name once it is whole, is for its owner alone, and the newest stay', async () => {
  const { path, state, folder, names } = openFolder('kept')
  assert.equal(await folder.newest(T0), null)
  writeFileSync(join(path, 'mine.txt'), '')
  for (const hour of [0, 1, 2]) {
    state.nowMs = T0 + hour * 3_600_000 + 123
    state.more = async () => assert.ok(!existsSync(join(path, backupName(state.nowMs))), 'not before its end')
    const { file, atMs, bytes } = await folder.make(never)
    assert.deepEqual([file, atMs], [join(path, backupName(state.nowMs)), T0 + hour * 3_600_000])
    assert.deepEqual([statSync(file).mode & 0o777, statSync(file).size], [0o600, bytes])
    assert.deepEqual(await folder.newest(state.nowMs), { file, atMs, bytes })
  }
  assert.deepEqual(names(), ['mine.txt', backupName(T0 + 3_600_000), backupName(T0 + 7_200_000)])
  assert.equal(state.dropped, 3)
  const whole = async function* () {
    yield readFileSync(join(path, backupName(T0 + 7_200_000)))
  }
  assert.equal((await (await readBackup(whole())).pieces.next()).value?.name, 'store')
})

test('a newest file of four bytes is no backup: the one before it counts, and only whole ones fill the folder', async () => {
  const { path, state, folder, names } = openFolder('cut')
  const { file, atMs, bytes } = await folder.make(never)
  const cut = backupName(T0 + 1_000)
  writeFileSync(join(path, cut), 'four')
  assert.deepEqual(await folder.newest(T0 + 2_000), { file, atMs, bytes })
  state.nowMs = T0 + 2_000
  await folder.make(never)
  assert.deepEqual(names(), [backupName(T0), cut, backupName(T0 + 2_000)])
  state.nowMs = T0 + 3_000
  await folder.make(never)
  assert.deepEqual(names(), [backupName(T0 + 2_000), backupName(T0 + 3_000)])
})

test('what a killed server has left goes, also when no backup is due; one that fails leaves nothing', async () => {
  const { path, state, folder, names } = openFolder('left')
  writeFileSync(join(path, 'runyard-scheduled-ab.new'), 'half')
  writeFileSync(join(path, 'other.backup.new'), 'of somebody')
  await folder.newest(T0)
  assert.deepEqual(names(), ['other.backup.new'])
  state.more = () => Promise.reject(new AppError('unavailable', 'its disk failed'))
  await assert.rejects(folder.make(never), /its disk failed/)
  const ending = new AbortController()
  state.more = async () => ending.abort(new Error('the server stops'))
  await assert.rejects(folder.make(ending.signal), /the server stops/)
  assert.deepEqual([names(), state.dropped], [['other.backup.new'], 2])
})

test('a backup of the same second, and later names of a clock that was set back, are left alone', async () => {
  const { path, folder, names } = openFolder('clock', { keep: 1 })
  const [old, now, later] = [T0 - 9_000, T0, T0 + 9_000].map(backupName) as [string, string, string]
  const whole = `runyard backup 1\n{}\n{"sha256":"${'0'.repeat(64)}"}\n`
  for (const name of [old, later]) writeFileSync(join(path, name), whole)
  assert.equal((await folder.newest(T0))?.atMs, T0 - 9_000)
  await folder.make(never)
  assert.deepEqual(names(), [now, later])
  await assert.rejects(folder.make(never), { code: 'conflict' })
})

test('the copy of a PostgreSQL is beside its backup, its password in no argument, and both exist or neither', async () => {
  const program = join(root, 'pg_dump')
  const note = join(root, 'said')
  writeFileSync(
    program,
    `#!/bin/sh\necho "$PGPASSWORD $RUNYARD_MASTER_KEY $*" >'${note}'\nfor one in "$@"; do case $one in --file=*) printf copy >"\${one#--file=}";; esac; done\n`,
  )
  chmodSync(program, 0o755)
  const env = { RUNYARD_MASTER_KEY: 'a key', PGPASSWORD: 'another', PATH: '/bin:/usr/bin' }
  const url = 'postgres://me:hid%64en@db/name?sslmode=require'
  const { path, state, folder, names } = openFolder('dumped', { keep: 1, dump: { program, url, env } })
  const { file, bytes } = await folder.make(never)
  assert.deepEqual(names(), [backupName(T0), `${backupName(T0)}.dump`])
  assert.equal(bytes, statSync(file).size + 4)
  assert.equal(statSync(`${file}.dump`).mode & 0o777, 0o600)
  const args = `--format=custom --exclude-table-data=*.server_lease --no-password --file=${path}/runyard-scheduled-1.new --dbname=postgres://me@db/name?sslmode=require`
  assert.equal(readFileSync(note, 'utf8'), `hidden  ${args}\n`)
  state.nowMs += 1_000
  await folder.make(never)
  assert.deepEqual(names(), [backupName(state.nowMs), `${backupName(state.nowMs)}.dump`])
  state.nowMs += 1_000
  state.more = () => Promise.reject(new AppError('unavailable', 'its disk failed'))
  await assert.rejects(folder.make(never))
  writeFileSync(program, '#!/bin/sh\necho "first" >&2\necho "pg_dump: error: server version mismatch" >&2\nexit 1\n')
  await assert.rejects(folder.make(never), {
    code: 'unavailable',
    message: `${program} made no copy of the database: pg_dump: error: server version mismatch`,
  })
  rmSync(program)
  await assert.rejects(folder.make(never), /made no copy of the database: spawn .* ENOENT/)
  assert.deepEqual(names(), [backupName(T0 + 1_000), `${backupName(T0 + 1_000)}.dump`])
})

test('a folder that cannot be used is a sentence', async () => {
  const { path, folder } = openFolder('gone')
  rmSync(path, { recursive: true })
  const gone = { code: 'unavailable', message: `there is no folder ${path}; make it, or mount what belongs there` }
  await assert.rejects(folder.newest(T0), gone)
  await assert.rejects(folder.make(never), gone)
  writeFileSync(path, '')
  await assert.rejects(folder.newest(T0), { code: 'unavailable', message: `${path} is not a folder` })
  const full = openFolder('full')
  full.state.more = () => Promise.reject(Object.assign(new Error('write'), { code: 'ENOSPC' }))
  await assert.rejects(full.folder.make(never), { message: `there is no space left for a backup in ${full.path}` })
  assert.deepEqual(full.names(), [])
})
