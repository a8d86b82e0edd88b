/** A folder keeps its newest backups, and whatever else is in it. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  backupName,
  beforeChangeName,
  keepNewest,
  keepNewestBeforeChange,
  newestBackup,
} from '../../../src/system/backup/backup-folder.ts'

const DAY_MS = 86_400_000
const T0 = Date.UTC(2026, 0, 1)

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-backups-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** File that begins and ends as a backup. */
const WHOLE = `runyard backup 1\n{}\n{"sha256":"${'0'.repeat(64)}"}\n`

test('the newest backups stay, older ones go, and other files are left alone', t => {
  const folder = makeFolder(t)
  const names = [0, 1, 9, 10, 100].map(days => backupName(T0 + days * DAY_MS))
  for (const name of [...names, 'mine.backup', 'runyard-old.backup']) writeFileSync(join(folder, name), WHOLE)
  assert.equal(names[0], 'runyard-20260101T000000Z.backup')
  assert.equal(keepNewest(folder, 2, names.at(-1)!), 3)
  assert.deepEqual(readdirSync(folder).sort(), ['mine.backup', 'runyard-old.backup', ...names.slice(3)].sort())
  assert.equal(keepNewest(folder, 2, names.at(-1)!), 0)
})

test('backups are found by their names, and a copy of a PostgreSQL goes with its backup', t => {
  const folder = makeFolder(t)
  const [first, second] = [backupName(T0), backupName(T0 + DAY_MS)]
  const others = [`${first}.new`, 'copy.dump', `${backupName(T0 - DAY_MS)}x`]
  for (const name of [second, first, `${first}.dump`, `${second}.dump`, ...others])
    writeFileSync(join(folder, name), WHOLE)
  assert.deepEqual(newestBackup(folder, T0), { newest: { name: first, atMs: T0 }, broken: [] })
  assert.deepEqual(newestBackup(folder, T0 + DAY_MS), { newest: { name: second, atMs: T0 + DAY_MS }, broken: [] })
  assert.equal(keepNewest(folder, 1, second), 1)
  assert.deepEqual(readdirSync(folder).sort(), [...others, second, `${second}.dump`].sort())
})

test('an incomplete backup does not count, and no complete one is removed for it', t => {
  const folder = makeFolder(t)
  const names = [0, 1, 2, 3, 4].map(days => backupName(T0 + days * DAY_MS))
  const contents = ['old', WHOLE, WHOLE, WHOLE.slice(0, -1), 'four']
  for (const [at, name] of names.entries()) writeFileSync(join(folder, name), contents[at]!)
  const newest = { name: names[2], atMs: T0 + 2 * DAY_MS }
  assert.deepEqual(newestBackup(folder, T0 + 9 * DAY_MS), { newest, broken: [names[4], names[3]] })
  assert.equal(keepNewest(folder, 3, names[4]!), 0)
  assert.equal(keepNewest(folder, 2, names[4]!), 1)
  assert.deepEqual(readdirSync(folder).sort(), names.slice(1))
  assert.deepEqual(newestBackup(folder, T0), { newest: null, broken: [] })
})

test('where the clock was set back, the backup that was made now stays, and the later ones do', t => {
  const folder = makeFolder(t)
  const [old, now, later] = [T0, T0 + DAY_MS, T0 + 9 * DAY_MS].map(backupName)
  for (const name of [old!, now!, later!]) writeFileSync(join(folder, name), WHOLE)
  assert.equal(keepNewest(folder, 1, now!), 1)
  assert.deepEqual(readdirSync(folder).sort(), [now, later].sort())
})

test('copies from before a change stay by their time, whatever their version', t => {
  const folder = makeFolder(t)
  const names = [
    beforeChangeName('10.0.0', 3, 'dump', T0),
    beforeChangeName('9.0.0', 2, 'sqlite', T0 + DAY_MS),
    beforeChangeName('1.0.0-rc.1+a/b', 1, 'sqlite', T0 + 2 * DAY_MS),
  ]
  assert.equal(names[2], 'runyard-1.0.0-rc.1+a_b-schema-1-20260103T000000Z.sqlite')
  for (const name of [...names, backupName(T0), 'mine.sqlite']) writeFileSync(join(folder, name), '')
  keepNewestBeforeChange(folder, 2)
  assert.deepEqual(readdirSync(folder).sort(), [...names.slice(1), backupName(T0), 'mine.sqlite'].sort())
})
