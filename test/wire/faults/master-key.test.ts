/** Replacing the encryption key of a server, killed in the middle of it. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { DEFAULT_OWNER, type SecretId } from '../../../src/core/ids.ts'
import { secretPlace } from '../../../src/core/secrets/seals.ts'
import { openSqliteStore } from '../../../src/store/engines/sqlite.ts'
import { loadMasterKeys } from '../../../src/system/keys/master-key.ts'
import { createVault, keyId } from '../../../src/system/keys/vault.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { runCommand, startCommand, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const SECRETS = 2_000
const ROTATE = ['master-key', 'rotate', '--data-dir']

const keyFile = (dataDir: string) => join(dataDir, 'encryption-key')
const vaultOf = (dataDir: string) => createVault(...loadMasterKeys(keyFile(dataDir), []))

async function addSecrets(dataDir: string): Promise<void> {
  const store = await openSqliteStore({ file: join(dataDir, 'runyard.sqlite'), host: 'inline' })
  const vault = vaultOf(dataDir)
  const add = (n: number) => {
    const id = `s${String(n).padStart(6, '0')}` as SecretId
    const secret = { id, owner: DEFAULT_OWNER, name: id, description: null, createdAtMs: n, valueUpdatedAtMs: null }
    return store.secrets.insert(secret, vault.seal(`value ${n}`, secretPlace(DEFAULT_OWNER, id)))
  }
  await Promise.all(Array.from({ length: SECRETS }, (_, n) => add(n)))
  await store.close()
}

/** Number of secrets that are sealed with this key, and true as `whole` if all open to their values. */
function look(dataDir: string, id: string): { sealedWith: number; whole: boolean } {
  const vault = vaultOf(dataDir)
  const database = new DatabaseSync(join(dataDir, 'runyard.sqlite'), { readOnly: true })
  const rows = database
    .prepare('SELECT name, sealed FROM secrets ORDER BY id')
    .all()
    .map(row => ({ name: String(row.name), text: String(row.sealed) }))
  database.close()
  const sealedWith = rows.filter(({ text }) => text.startsWith(`v3.${id}.`)).length
  const isWhole = ({ name, text }: (typeof rows)[number], n: number) =>
    vault.open(text, secretPlace(DEFAULT_OWNER, name)) === `value ${n}`
  return { sealedWith, whole: rows.length === SECRETS && rows.every(isWhole) }
}

test('a rotation that is killed continues where it was, and nothing is lost in between', async () => {
  const dataDir = temporaryFolder()
  const early = await runCommand([...ROTATE, dataDir])
  assert.match(early.stderr, /no server has run on it yet/)
  const server = await startServer({ dataDir })
  const running = await runCommand([...ROTATE, dataDir])
  assert.equal(running.code, 69)
  assert.match(running.stderr, /is in use by the server with pid/)
  await server.stop()
  await addSecrets(dataDir)
  const [old] = loadMasterKeys(keyFile(dataDir), [])
  const other = await runCommand([...ROTATE, dataDir], { RUNYARD_DATABASE: 'postgres://me:hidden@127.0.0.1:1/else' })
  assert.match(other.stderr, /belongs to the embedded database in it, and PostgreSQL at 127\.0\.0\.1:1\/else is given/)
  assert.ok(!other.stderr.includes('hidden'))

  const first = startCommand([...ROTATE, dataDir])
  await until('the new key', () => statSync(keyFile(dataDir)).size === 64, 20_000, 5)
  const [next] = loadMasterKeys(keyFile(dataDir), [])
  await until('some secrets', () => look(dataDir, keyId(next)).sealedWith > 10, 20_000, 1)
  await first.kill9()
  const halfway = look(dataDir, keyId(next))
  assert.ok(halfway.whole && halfway.sealedWith < SECRETS, `${halfway.sealedWith} of ${SECRETS}`)
  assert.deepEqual(loadMasterKeys(keyFile(dataDir), []), [next, old])

  const between = await startServer({ dataDir })
  assert.ok(between.lines.some(line => line.includes('several encryption keys are in use')))
  await between.stop()

  const second = await runCommand([...ROTATE, dataDir])
  assert.deepEqual([second.code, second.stderr], [0, ''])
  // With the canary of the key.
  assert.match(second.stdout, new RegExp(`^${SECRETS + 1} values are sealed with the new key in `))
  assert.deepEqual(loadMasterKeys(keyFile(dataDir), []), [next])
  assert.deepEqual(look(dataDir, keyId(next)), { sealedWith: SECRETS, whole: true })
  assert.ok(!existsSync(`${keyFile(dataDir)}.new`))
})

test('a server with another encryption key than its database is refused before it changes anything', async () => {
  const dataDir = temporaryFolder()
  await (await startServer({ dataDir })).stop()
  const key = readFileSync(keyFile(dataDir))
  rmSync(keyFile(dataDir))
  const serve = ['serve', '--port', '0', '--data-dir', dataDir]
  for (const env of [{}, { RUNYARD_MASTER_KEY: randomBytes(32).toString('base64') }]) {
    const refused = await runCommand(serve, env)
    assert.equal(refused.code, 69)
    assert.match(refused.stderr, /sealed with another encryption key than this server has; nothing was changed/)
    assert.ok(!existsSync(keyFile(dataDir)), 'no other key is left behind')
  }
  await (await startServer({ dataDir, env: { RUNYARD_MASTER_KEY: key.toString('base64') } })).stop()
})
