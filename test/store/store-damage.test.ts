/** A database file that is damaged: what callers of the store get, what the start and `check` say. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { checkDatabase } from '../../src/main/commands/check.ts'
import { openStore } from '../../src/main/database/store.ts'
import { layered } from '../../src/ports/store/operations.ts'
import { StoreDamaged } from '../../src/ports/store/store-trouble.ts'
import { checkFile } from '../../src/store/database-check.ts'
import { openSqliteStore, type StoreHost } from '../../src/store/engines/sqlite.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createMeasuring, StoreDamageWatch } from '../../src/system/observing/store-watches.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-damage-'))
after(() => rmSync(root, { recursive: true, force: true }))

async function makeDataDir(name: string): Promise<{ dataDir: string; file: string }> {
  const dataDir = join(root, name)
  mkdirSync(dataDir)
  const file = join(dataDir, 'runyard.sqlite')
  await (await openSqliteStore({ file, host: 'inline' })).close()
  return { dataDir, file }
}

function overwrite(file: string, at: number, bytes: Uint8Array): void {
  writeSync(openSync(file, 'r+'), bytes, 0, bytes.length, at)
}

/** Overwrites the first page of a table and of each of its indexes. */
function damageTable(file: string, name: string): void {
  const database = new DatabaseSync(file)
  const rows = database.prepare('SELECT rootpage FROM sqlite_schema WHERE tbl_name = ? AND rootpage > 0').all(name)
  database.close()
  for (const { rootpage } of rows) overwrite(file, (Number(rootpage) - 1) * 4096, Buffer.alloc(4096, 0xab))
}

for (const host of ['inline', 'thread'] satisfies StoreHost[]) {
  test(`damage that is met in use is known as such from then on, and reported once: ${host}`, async t => {
    const { file } = await makeDataDir(host)
    damageTable(file, 'workers')
    const events: unknown[] = []
    const watch = new StoreDamageWatch(
      (...event) => void events.push(event),
      () => 5,
    )
    const store = layered(
      await openSqliteStore({ file, host }),
      createMeasuring(systemClock, () => {}, watch.look),
    )
    t.after(() => store.close())
    assert.equal(watch.met(), null)
    for (let time = 0; time < 2; time += 1) {
      await assert.rejects(store.workers.alive(), error => {
        assert.ok(error instanceof StoreDamaged && error.code === 'unavailable')
        assert.match(
          error.message,
          /the database file runyard\.sqlite is damaged \(.*malformed\); stop the server, examine/,
        )
        return true
      })
    }
    const said = 'database disk image is malformed'
    const where = 'the database file runyard.sqlite'
    assert.deepEqual(watch.met(), { where, databaseMessage: said, sinceMs: 5 })
    assert.deepEqual(events, [['store.damaged', { where, problem: said }]])
  })
}

for (const [said, at, bytes] of [
  ['unsupported file format', 47, [9]],
  ['file is not a database', 0, [0, 0]],
  ['malformed database schema', 100, [0xff, 0xff, 0xff]],
] as const) {
  test(`a file whose header is damaged is refused with what to do: ${said}`, async () => {
    const { dataDir, file } = await makeDataDir(said.replaceAll(' ', '-'))
    overwrite(file, at, Uint8Array.from(bytes))
    const reading = readConfig({ options: { dataDir, port: '0' }, env: {}, absolute: path => resolve(path) })
    assert.ok('config' in reading)
    const words = said.startsWith('malformed') ? 'database disk image is malformed' : said
    await assert.rejects(
      openStore(reading.config, null, () => {}),
      new RegExp(`the database ${file} is damaged \\(${words}\\); look at it with runyard check, and restore a backup`),
    )
    const { flaws } = await checkDatabase(reading.config, false)
    assert.match(flaws[0]?.problem ?? '', new RegExp(`^the file is damaged: ${words}`))
    assert.match(flaws[0]?.remedy ?? '', /restore a backup/)
    assert.equal(checkFile(file).problem, `it is damaged (${words})`)
  })
}
