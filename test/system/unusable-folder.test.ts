/** Error of a start with a data directory that it cannot use. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { unusableFolder } from '../../src/main/database/store.ts'

const FULL = 'the data directory /data cannot be used: its disk is full; make room there'

test('a full disk is no reason for another data directory, which would be a new server', () => {
  const lock = new DatabaseSync(':memory:')
  lock.exec('PRAGMA max_page_count = 2; CREATE TABLE held (by)')
  let full: unknown
  try {
    lock.exec('INSERT INTO held VALUES (hex(zeroblob(100000)))')
  } catch (error) {
    full = error
  }
  assert.equal(unusableFolder('/data', full as Error), FULL)
  for (const code of ['ENOSPC', 'EDQUOT']) assert.equal(unusableFolder('/data', fault(code)), FULL)
})

test('a damaged lock is named', () => {
  const damaged = Object.assign(new Error('file is not a database'), { code: 'ERR_SQLITE_ERROR', errcode: 26 })
  assert.match(unusableFolder('/data', damaged), /its file lock\.sqlite is damaged; .*remove that file$/)
})

test('any other problem is named, with what helps', () => {
  assert.throws(
    () => readdirSync('/data/missing'),
    (error: Error) => unusableFolder('/data', error).endsWith('; give another --data-dir'),
  )
  const said = 'the data directory /data cannot be used: its file system is read-only; give another --data-dir'
  assert.equal(unusableFolder('/data', fault('EROFS')), said)
})

function fault(code: string): Error {
  return Object.assign(new Error(`${code}: of the system`), { code })
}
