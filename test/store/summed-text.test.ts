/** Inputs and results that were changed on the disk: found when they are read, and by `check`. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { auditFile } from '../../src/store/database-audit.ts'
import { openSqliteStore } from '../../src/store/engines/sqlite.ts'
import { readSummed, summed } from '../../src/store/tables/summed-text.ts'
import { E1, jobId, OWNER, T0, W1, World } from '../contract/store-world.ts'
import { openRig } from '../support/rig.ts'

const root = mkdtempSync(join(tmpdir(), 'runyard-summed-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** Flips a bit of each place of a file that has these bytes: moved rows leave old ones behind. */
function flip(file: string, text: string): void {
  const bytes = readFileSync(file)
  for (let at = bytes.indexOf(text); at !== -1; at = bytes.indexOf(text, at + 1)) bytes[at]! ^= 1
  writeFileSync(file, bytes)
}

test('a text comes back as it was, with every kind of characters, and old and sealed ones too', () => {
  for (const text of ['{}', '"ä \u{1f600}"', 'null', 'sealed:v3:abc', 'x'.repeat(5_000_000)]) {
    assert.deepEqual(readSummed(summed(text)), { text, isWhole: true })
    assert.deepEqual(readSummed(text), { text, isWhole: true })
  }
  assert.deepEqual(readSummed(summed('sealed:v3:abc')), { text: 'sealed:v3:abc', isWhole: true })
  assert.equal(summed(null), null)
  assert.equal(readSummed(summed('{"a":1}').replace('a', 'b')).isWhole, false)
  assert.equal(readSummed(summed('{"a":1}').replace('#', '"')).isWhole, false)
})

test('a byte that flips in a small or large input or result is found by a check, and no reader takes it for the text', async () => {
  const file = join(root, 'flipped.sqlite')
  const store = await openSqliteStore({ file, host: 'inline' })
  const world = new World(store)
  await world.begin()
  await world.worker()
  const large = 'y'.repeat(20_000)
  const ids = ['small', 'large', 'whole']
  for (const [n, id] of ids.entries()) {
    await world.job(id, { position: T0 + n, input: JSON.stringify({ [`in_${id}`]: id === 'large' ? large : id }) })
  }
  assert.equal((await world.claim(W1, 3)).length, 3)
  for (const id of ids) {
    const output = JSON.stringify({ [`out_${id}`]: id === 'large' ? large : id })
    const outcome = { status: 'COMPLETED', output, error: null, warning: null } as const
    await store.jobOutcomes.finish({ jobId: jobId(id), workerId: W1, outcome, nowMs: T0 })
  }
  await store.largeTexts.append({ id: 'text', kind: 'input', owner: OWNER, seq: 0, text: '{"in_part":1}', nowMs: T0 })
  await store.close()
  assert.deepEqual(auditFile(file, false, T0).flaws, [])
  for (const text of ['in_small', 'in_large', 'out_small', 'out_large', 'in_part']) flip(file, text)
  assert.deepEqual(
    auditFile(file, false, T0).flaws.map(({ problem, mends }) => [problem, mends]),
    [
      ['1 inputs of jobs are not what was stored: small', false],
      ['1 large inputs of jobs are not what was stored: large', false],
      ['1 outputs of jobs are not what was stored: small', false],
      ['1 large outputs of jobs are not what was stored: large', false],
      ['1 parts of large inputs and outputs of jobs are not what was stored: text-000000', false],
    ],
  )
  const again = await openSqliteStore({ file, host: 'inline' })
  for (const id of ['small', 'large']) {
    const job = await again.jobs.find(E1, jobId(id), T0)
    assert.deepEqual([job?.status, job?.output], ['FAILED', null])
    assert.match(job?.error ?? '', /the stored result of this job was changed by damage of the disk/)
  }
  await assert.rejects(again.largeTexts.part('text', 0), { code: 'internal', message: /was changed by damage/ })
  assert.equal((await again.jobs.find(E1, jobId('whole'), T0))?.output, '{"out_whole":"whole"}')
  await again.close()
})

test('a job whose input was changed fails and goes to no worker, which gets the next one', async t => {
  const file = join(root, 'claimed.sqlite')
  const rig = await openRig(t, { openStore: () => openSqliteStore({ file, host: 'inline' }) })
  const { endpoint, worker } = await rig.endpointWithWorker()
  const changed = await rig.submit(endpoint, { input: { prompt: 'as submitted' } })
  const whole = await rig.submit(endpoint, { input: { prompt: 'another' } })
  const beside = new DatabaseSync(file)
  beside.prepare("UPDATE jobs SET input = replace(input, 'as submitted', 'as damaged!!') WHERE id = ?").run(changed)
  beside.close()
  assert.equal(await worker.takeJob(), whole)
  const { json } = await rig.ask('GET', `/v2/${endpoint}/status/${changed}`)
  assert.equal(json.status, 'FAILED')
  assert.match(JSON.stringify(json.error), /the stored input of this job was changed by damage/)
  assert.equal((await worker.done(whole)).status, 200)
})
