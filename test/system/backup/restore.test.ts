/** A restore that is killed at any step can be repeated, and until then nobody takes its folder for a server's. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs, { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { type Config, readConfig } from '../../../src/config/config.ts'
import { folderRefusal } from '../../../src/doctor/diagnose.ts'
import { checkDatabase } from '../../../src/main/commands/check.ts'
import { restoreBackup } from '../../../src/main/commands/restore.ts'
import { startServer } from '../../../src/main/server.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { createBackups } from '../../../src/system/backup/data-dir-backups.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-restore-'))
after(() => rmSync(root, { recursive: true, force: true }))

const STEPS = ['writeFileSync', 'fsyncSync', 'renameSync', 'rmSync', 'mkdirSync'] as const

function makeConfig(dataDir: string, newDatabase = false): Config {
  const env = newDatabase ? { RUNYARD_NEW_DATABASE: 'true' } : {}
  const reading = readConfig({ options: { dataDir, port: '0' }, env, absolute: path => resolve(path) })
  assert.ok('config' in reading)
  return reading.config
}

/**
 * Makes a backup of a server with the output of workers. Its keys are left out: to seal and open
 * them takes half a second each.
 */
async function backupFile(name: string, postgres: string | null): Promise<string> {
  const dataDir = join(root, `${name}-server`)
  mkdirSync(join(dataDir, 'logs/e'), { recursive: true })
  const note = postgres === null ? 'the embedded database\n' : 'PostgreSQL at h/d\nid abc\n'
  const files = { store: note, 'seals-bound': 'yes\n', 'logs/e/w.log': 'said\n' }
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dataDir, file), text)
  if (postgres === null) {
    const store = await openSqliteStore({ file: join(dataDir, 'runyard.sqlite'), host: 'inline' })
    await store.close()
  }
  const options = { dataDir, version: '1.0.0', postgres, keyIsGiven: false, settings: {}, now: () => 0 }
  const backup = await createBackups(options).make({ passphrase: null, withLogs: true })
  const file = join(root, `${name}.backup`)
  writeFileSync(file, Buffer.concat(await Array.fromAsync(backup.pieces)))
  await backup.drop()
  return file
}

function restore(file: string, config: Config) {
  return restoreBackup({ config, file, passphrase: null, report: () => {} })
}

/** All names in a folder, and whether a note has a content. */
function readState(folder: string): string {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : []
  return names.map(name => `${name} ${fs.statSync(join(folder, name)).size > 0}`).join('\n')
}

/** The content of all files but those that the lock of the folder makes and what is not whole. */
function readContent(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {}
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    name => !name.startsWith('lock.') && name !== '.gitignore' && !name.endsWith('.new'),
  )
  const files = names.filter(name => fs.statSync(join(folder, name)).isFile()).sort()
  const digest = (name: string) => createHash('sha256').update(readFileSync(join(folder, name)))
  return Object.fromEntries(files.map(name => [name, digest(name).digest('hex')]))
}

/** Runs work whose process changes nothing on the disk from its n-th step on. @returns true if it reached that step */
async function killedAt(step: number, work: () => Promise<unknown>): Promise<boolean> {
  const real = Object.fromEntries(STEPS.map(name => [name, fs[name]]))
  let steps = 0
  for (const name of STEPS) {
    Object.assign(fs, {
      [name]: (...args: never[]) => {
        // Not of the restore, but of its lock, which ends with its process.
        if (!String(args[0]).endsWith('server.json')) steps += 1
        if (steps >= step && !String(args[0]).endsWith('server.json')) throw new Error('killed')
        return (real[name] as (...all: never[]) => unknown)(...args)
      },
    })
  }
  syncBuiltinESMExports()
  try {
    await work()
    return false
  } catch (error) {
    assert.match(String(error), /killed/)
    return true
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
}

for (const postgres of [null, 'h/d']) {
  test(`a restore that is killed at any step can be repeated: ${postgres ?? 'the embedded database'}`, async () => {
    const name = postgres === null ? 'embedded' : 'postgres'
    const file = await backupFile(name, postgres)
    const whole = join(root, `${name}-whole`)
    await restore(file, makeConfig(whole))
    const wanted = readContent(whole)
    assert.deepEqual(Object.keys(wanted).includes('runyard.sqlite'), postgres === null)
    assert.ok('logs/e/w.log' in wanted)
    let unfinished = 0
    const states = new Set<string>()
    // Of PostgreSQL only the notes are different.
    for (let step = 1; ; step += postgres === null ? 1 : 5) {
      const dataDir = join(root, `${name}-${step}`)
      const config = makeConfig(dataDir)
      if (!(await killedAt(step, () => restore(file, config)))) break
      // The journal of its lock stays where a process is killed.
      if (existsSync(dataDir)) writeFileSync(join(dataDir, 'lock.sqlite-journal'), '')
      const isUnfinished = folderRefusal(config) !== null
      unfinished += isUnfinished ? 1 : 0
      // Most steps are flushes, which leave the folder as the one before did.
      const state = readState(dataDir)
      const isKnown = states.has(state)
      states.add(state)
      const isEmpty = Object.keys(readContent(dataDir)).length === 0
      if (!isKnown && (isUnfinished || isEmpty)) await restore(file, config)
      if (!isKnown) assert.deepEqual(readContent(dataDir), wanted, `step ${step}`)
      rmSync(dataDir, { recursive: true, force: true })
    }
    assert.ok(unfinished > 5, `${unfinished} steps`)
  })
}

test('serve and check refuse the folder of an unfinished restore, and a repetition takes nothing that it did not put there', async () => {
  const file = await backupFile('refused', null)
  const dataDir = join(root, 'refused')
  let step = 1
  const isMoved = () => existsSync(join(dataDir, 'runyard.sqlite')) && !existsSync(join(dataDir, 'logs/e/w.log'))
  for (; !isMoved(); step += 1) {
    rmSync(dataDir, { recursive: true, force: true })
    assert.ok(await killedAt(step, () => restore(file, makeConfig(dataDir))))
  }
  const before = readContent(dataDir)
  const said = /the restore of a backup into .* is not finished; .*repeat it with runyard restore <file> --data-dir/
  for (const config of [makeConfig(dataDir), makeConfig(dataDir, true)]) {
    await assert.rejects(startServer(config, root), said)
    await assert.rejects(checkDatabase(config, false), said)
  }
  assert.match(folderRefusal(makeConfig(dataDir)) ?? '', said)
  assert.deepEqual(readContent(dataDir), before)
  writeFileSync(join(dataDir, 'mine'), 'a file of somebody else')
  await assert.rejects(restore(file, makeConfig(dataDir)), /is not empty/)
  assert.equal(readFileSync(join(dataDir, 'mine'), 'utf8'), 'a file of somebody else')
})
