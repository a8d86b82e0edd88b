/** A folder keeps its newest backups, and whatever else is in it. */
import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { backupName, keepNewest } from '../../../src/system/backup/backup-folder.ts'

test('the newest backups stay, older ones go, and other files are left alone', t => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-backups-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const names = [0, 1, 9, 10, 100].map(days => backupName(Date.UTC(2026, 0, 1) + days * 86_400_000))
  for (const name of [...names, 'mine.backup', 'runyard-old.backup']) writeFileSync(join(folder, name), '')
  assert.equal(names[0], 'runyard-20260101T000000Z.backup')
  assert.equal(keepNewest(folder, 2), 3)
  assert.deepEqual(readdirSync(folder).sort(), ['mine.backup', 'runyard-old.backup', ...names.slice(3)].sort())
  assert.equal(keepNewest(folder, 2), 0)
})
