/** A backup goes on only while its reader may have it and reads it: there is one at a time. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { BACKUP_READING, backupStream } from '../../../src/api/ops/backup-stream.ts'
import { AppError } from '../../../src/core/errors.ts'
import type { Backups } from '../../../src/ports/backups.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const PIECE = new Uint8Array(1024 * 1024)
const WISH = { passphrase: null }

/** Backups of so many pieces, one at a time. */
function backupsOf(pieces: number): Backups & { isBusy: boolean } {
  const backups = {
    isBusy: false,
    async make() {
      if (backups.isBusy) throw new AppError('conflict', 'another backup is being made')
      backups.isBusy = true
      return {
        pieces: (async function* () {
          for (let at = 0; at < pieces; at += 1) yield PIECE
        })(),
        drop: async () => {
          backups.isBusy = false
        },
      }
    },
  }
  return backups
}

async function begin(t: TestContext, pieces: number) {
  const backups = backupsOf(pieces)
  const rig = await openRig(t, { backups })
  const key = await rig.addKey('rpa_operator_of_backups')
  const response = await rig.open('/ops/backup', { key, body: WISH }, 'POST')
  assert.equal(response.status, 200)
  return { rig, key, backups, reader: response.body!.getReader() }
}

async function revoke(rig: Rig, key: string): Promise<void> {
  const { id } = (await rig.store.keys.findByHash(rig.vault.hash(key)))!
  assert.equal((await rig.ask('DELETE', `/v2/account/keys/${id}`)).status, 204)
}

test('a backup ends within a second after its key was revoked, and the next one can be made', async t => {
  const { rig, key, backups, reader } = await begin(t, 100)
  assert.equal((await reader.read()).value?.byteLength, PIECE.byteLength)
  await revoke(rig, key)
  await rig.clock.advance(1_000)
  await assert.rejects(reader.read(), { code: 'unauthorized' })
  assert.equal(backups.isBusy, false)
  const next = await rig.open('/ops/backup', { key: KEY, body: WISH }, 'POST')
  assert.equal(next.status, 200)
})

test('a backup ends when its key loses a right of the operator', async t => {
  const { rig, key, backups, reader } = await begin(t, 100)
  await reader.read()
  const { id } = (await rig.store.keys.findByHash(rig.vault.hash(key)))!
  const body = { scope: { type: 'restricted', management: 'write', jobs: 'write' } }
  assert.equal((await rig.ask('PATCH', `/v2/account/keys/${id}`, { body })).status, 200)
  await rig.clock.advance(1_000)
  await assert.rejects(reader.read(), { code: 'forbidden' })
  assert.equal(backups.isBusy, false)
})

test('a reader that stops reading does not hold the backup', async t => {
  const { rig, backups, reader } = await begin(t, 100)
  await reader.read()
  assert.equal((await rig.ask('POST', '/ops/backup', { body: WISH })).status, 409)
  await rig.clock.advance(BACKUP_READING.graceMs + 20_000)
  await assert.rejects(reader.read(), /read too slowly/)
  assert.equal(backups.isBusy, false)
  assert.equal((await rig.open('/ops/backup', { body: WISH }, 'POST')).status, 200)
})

test('a reader of a slow line gets all of it, in as many steps as it needs', async t => {
  const { rig, backups, reader } = await begin(t, 20)
  for (let at = 0; at < 20; at += 1) {
    assert.equal((await reader.read()).done, false)
    await rig.clock.advance(10_000)
  }
  assert.equal((await reader.read()).done, true)
  assert.equal(backups.isBusy, false)
})

test('a backup that is read fast enough ends at its deadline all the same', async () => {
  const clock = new VirtualClock()
  let isDropped = false
  const backup = {
    pieces: (async function* () {
      for (;;) yield PIECE
    })(),
    drop: async () => {
      isDropped = true
    },
  }
  const reader = backupStream(backup, clock, new AbortController().signal).getReader()
  const stepMs = 10_000
  for (let atMs = 0; atMs < BACKUP_READING.deadlineMs; atMs += stepMs) {
    assert.equal((await reader.read()).done, false)
    await clock.advance(stepMs)
  }
  await clock.advance(stepMs)
  await assert.rejects(reader.read(), /took too long/)
  assert.equal(isDropped, true)
})

test('a client that goes away gives the backup back at once', async t => {
  const { backups, reader } = await begin(t, 100)
  await reader.read()
  await reader.cancel()
  assert.equal(backups.isBusy, false)
})

test('a backup that breaks off is given back, and its reader gets the reason', async () => {
  let isDropped = false
  const backup = {
    pieces: (async function* () {
      yield PIECE
      throw new Error('the disk broke')
    })(),
    drop: async () => {
      isDropped = true
    },
  }
  const reader = backupStream(backup, new VirtualClock(), new AbortController().signal).getReader()
  await reader.read()
  await assert.rejects(reader.read(), /the disk broke/)
  assert.equal(isDropped, true)
})
