/** Texts that an older version sealed without binding them to their rows are bound at the first start of this one. */
import assert from 'node:assert/strict'
import { createCipheriv, randomBytes } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { loadMasterKeys } from '../../../src/system/keys/master-key.ts'
import { keyId } from '../../../src/system/keys/vault.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { ask, makeEndpoint, runJob } from '../support/client.ts'
import { workerProcesses } from '../support/processes.ts'
import { fixture, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { inContainers } from '../support/workers.ts'

const skip = inContainers ? 'looks into the environment of processes' : false

/** The form of versions before the one that binds: the same cipher without associated data. */
function sealedUnbound(key: Buffer, plain: string): string {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return ['v2', keyId(key), nonce.toString('base64url'), sealed.toString('base64url')].join('.')
}

test('an older database is resealed at its first start, its workers get the same values, and old texts are refused from then on', {
  skip,
}, async () => {
  const dataDir = temporaryFolder()
  const first = await startServer({ dataDir })
  const { json } = await ask(first, '/v2/account/secrets', { body: { name: 'token', value: 'new form' } })
  await first.stop()
  const [key] = loadMasterKeys(join(dataDir, 'encryption-key'), [])
  const change = (...sealed: string[]) => {
    const database = new DatabaseSync(join(dataDir, 'runyard.sqlite'))
    if (sealed.length > 0) database.prepare('UPDATE secrets SET sealed = ? WHERE id = ?').run(sealed[0]!, json.id)
    const row = database.prepare('SELECT sealed FROM secrets WHERE id = ?').get(json.id)
    database.close()
    return String(row?.sealed)
  }
  change(sealedUnbound(key!, 'of an older version'))
  rmSync(join(dataDir, 'seals-bound'))

  const second = await startServer({ dataDir })
  assert.equal(second.events('seals.bound')[0]?.resealed, 1)
  const env = { TOKEN: '{{ RUNPOD_SECRET_token }}' }
  const endpoint = await makeEndpoint(second, { folder: fixture('node-everyday'), env, settings: { workersMin: 1 } })
  await runJob(second, endpoint, { n: 0 })
  const environment = readFileSync(`/proc/${workerProcesses(dataDir)[0]!.pid}/environ`, 'utf8')
  assert.ok(environment.split('\0').includes('TOKEN=of an older version'))
  await second.stop()
  assert.match(change(), /^v3\./)

  change(sealedUnbound(key!, 'put there by somebody'))
  const third = await startServer({ dataDir })
  assert.deepEqual(third.events('seals.bound'), [])
  const failed = await until('a failed start', () => third.events('worker.start_failed')[0] ?? false)
  assert.match(String(failed.problem), /is in an older form/)
  await third.stop()
  assert.match(change(), /^v2\./)
})
