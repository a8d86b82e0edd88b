/**
 * The note of changes: it finds a write-ahead log that was cut or changed, and never blames a
 * good database.
 */
import assert from 'node:assert/strict'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { type Config, readConfig } from '../../src/config/config.ts'
import { checkDatabase } from '../../src/main/commands/check.ts'
import { openStore } from '../../src/main/database/store.ts'
import { checkFile } from '../../src/store/database-check.ts'
import { changeNoteFile, lossIn, readChangeNote } from '../../src/store/engines/change-note.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { copySqlite } from '../../src/store/engines/sqlite-copy.ts'
import { SqliteEngine } from '../../src/store/engines/sqlite-engine.ts'
import { E1, makeEndpoint, makeJob, makeTemplate, makeWorker, T0, TPL, W1 } from '../contract/store-world.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-changes-'))
after(() => rmSync(root, { recursive: true, force: true }))

const FILES = ['', '-wal', '-changes']

function write(engine: SqliteEngine, ...calls: readonly [name: string, ...args: unknown[]][]): void {
  for (const outcome of engine.write(calls.map(([name, ...args]) => ({ name, args }))))
    if (!outcome.ok) throw outcome.error
}

/** A database of a server that was killed: its log is still there. @returns its data directory */
function killed(name: string, jobs = 20): string {
  const live = join(root, `${name}-live`)
  mkdirSync(live)
  const first = new SqliteEngine({ file: join(live, 'runyard.sqlite') })
  begin(first)
  first.close()
  const engine = new SqliteEngine({ file: join(live, 'runyard.sqlite') })
  for (let n = 0; n < jobs; n += 1) write(engine, ['jobs.insert', makeJob(`job${n}`)])
  const dataDir = join(root, name)
  mkdirSync(dataDir)
  for (const end of FILES) copyFileSync(join(live, `runyard.sqlite${end}`), join(dataDir, `runyard.sqlite${end}`))
  engine.close()
  return dataDir
}

function begin(engine: SqliteEngine): void {
  write(engine, ['templates.insert', makeTemplate(TPL)], ['endpoints.insert', makeEndpoint(E1, { workersMax: 10 })])
  write(engine, ['workers.insert', makeWorker(W1), 'token'], ['workers.seen', W1, 1, null, T0])
}

function makeConfig(dataDir: string): Config {
  const reading = readConfig({ options: { dataDir, port: '0' }, env: {}, absolute: path => resolve(path) })
  assert.ok('config' in reading)
  return reading.config
}

function change(file: string, at: (size: number) => number, with_: (byte: number) => number): void {
  const bytes = readFileSync(file)
  const place = at(bytes.length)
  bytes[place] = with_(bytes[place]!)
  writeFileSync(file, bytes)
}

for (const [what, damage] of [
  ['cut in half', wal => truncateSync(wal, Math.floor(readFileSync(wal).length / 2))],
  ['zeroed in its second half', wal => writeFileSync(wal, readFileSync(wal).fill(0, readFileSync(wal).length / 2))],
  [
    'flipped by one bit in a frame',
    wal =>
      change(
        wal,
        size => size - 60_000,
        byte => byte ^ 1,
      ),
  ],
] satisfies [string, (wal: string) => void][]) {
  test(`a write-ahead log that was ${what} is refused with the number of changes, and accepted by a repair`, async () => {
    const dataDir = killed(what.replaceAll(' ', '-'))
    const config = makeConfig(dataDir)
    const file = join(dataDir, 'runyard.sqlite')
    assert.equal(lossIn(file), null)
    damage(`${file}-wal`)
    const said =
      /^the last (\d+) changes are missing: the database has (\d+) of the 24 changes that were on stable storage; its write-ahead log was cut/
    const [, missing, left] = said.exec(lossIn(file) ?? '') ?? []
    assert.equal(Number(missing) + Number(left), 24)
    assert.ok(Number(missing) > 0 && Number(left) > 0)
    await assert.rejects(
      openStore(config, null, () => {}),
      error => {
        assert.match((error as Error).message, said)
        assert.match(
          (error as Error).message,
          /put the files back as they were, or restore a backup .* runyard check --repair/,
        )
        return true
      },
    )
    assert.match(checkFile(file).problem ?? '', said)
    for (const repair of [false, true]) {
      const { flaws } = await checkDatabase(config, repair)
      assert.match(flaws[0]?.problem ?? '', said)
    }
    assert.deepEqual((await checkDatabase(config, false)).flaws, [])
    await (await openStore(config, null, () => {})).store.close()
  })
}

test('it is never newer than what is on stable storage, whatever a power cut keeps of it', () => {
  const live = join(root, 'power')
  mkdirSync(live)
  const file = join(live, 'runyard.sqlite')
  const failing = { now: false }
  const around = (commit: () => void) => {
    if (failing.now) throw new Error('the disk failed')
    commit()
  }
  const engine = new SqliteEngine({ file, aroundCommit: around })
  begin(engine)
  const notes: Buffer[] = []
  let flushed: readonly Buffer[] = []
  let isFlushed = true
  const step = (flushes: boolean) => {
    isFlushed = flushes
    if (flushes) flushed = ['', '-wal'].map(end => readFileSync(`${file}${end}`))
    notes.push(readFileSync(changeNoteFile(file)))
  }
  const claim = { endpointId: E1, workerId: W1, nowMs: T0, limit: 1 }
  for (let n = 0; n < 12; n += 1) {
    write(engine, ['jobs.insert', makeJob(`job${n}`)])
    step(true)
    // Not flushed: a power cut may undo it.
    write(engine, ['jobs.claim', claim])
    step(false)
    failing.now = true
    engine.write([{ name: 'jobs.insert', args: [makeJob(`failed${n}`)] }])
    failing.now = false
    step(false)
    const after = join(root, 'power-after')
    for (const note of [...notes.slice(-4), notes[0]!, notes.at(-1)!.subarray(0, 20), Buffer.alloc(42)]) {
      rmSync(after, { recursive: true, force: true })
      mkdirSync(after)
      for (const [at, end] of ['', '-wal'].entries()) writeFileSync(join(after, `runyard.sqlite${end}`), flushed[at]!)
      writeFileSync(join(after, 'runyard.sqlite-changes'), note)
      assert.equal(lossIn(join(after, 'runyard.sqlite')), null, `${n} ${note} ${isFlushed}`)
    }
  }
  assert.equal(readChangeNote(file)?.changes, 16)
  engine.close()
})

test('operations that change nothing are not counted, nor flushed', () => {
  const folder = join(root, 'idle')
  mkdirSync(folder)
  const file = join(folder, 'runyard.sqlite')
  const engine = new SqliteEngine({ file })
  begin(engine)
  const before = readFileSync(`${file}-wal`).length
  for (let n = 0; n < 3; n += 1) write(engine, ['workers.evict', 'nobody', T0])
  assert.equal(readFileSync(`${file}-wal`).length, before)
  assert.equal(readChangeNote(file)?.changes, 4)
  engine.close()
})

test('a copy of a database says nothing of the note of the other one, and one without a note gets one', async () => {
  const dataDir = killed('copied', 3)
  const file = join(dataDir, 'runyard.sqlite')
  const copy = join(root, 'copy.sqlite')
  await copySqlite(file, copy)
  const store = await openSqliteStore({ file, host: 'moving' })
  await store.jobs.insert(makeJob('inline'))
  await store.moveToThread()
  await store.jobs.insert(makeJob('in a thread'))
  await store.close()
  assert.equal(readChangeNote(file)?.changes, 9)
  for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
  // The way back after an upgrade is one cp.
  cpSync(copy, file)
  assert.equal(lossIn(file), null)
  new SqliteEngine({ file }).close()
  assert.equal(readChangeNote(file)?.changes, 0)
  rmSync(changeNoteFile(file))
  new SqliteEngine({ file }).close()
  assert.ok(existsSync(changeNoteFile(file)))
})
