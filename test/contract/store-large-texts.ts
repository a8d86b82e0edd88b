import assert from 'node:assert/strict'
import { JOB_RECORD_RULES } from '../../src/core/jobs/job-record.ts'
import type { LargeTextKind, ReceivedOutput, ReceivedText } from '../../src/core/jobs/large-text.ts'
import { numberedIds, running } from './store-batches.ts'
import { BROKEN, type Cases, DONE, E1, jobId, OWNER, T0, W1, W2, type World } from './store-world.ts'

/** As many bytes as an output has at least that is stored in parts. */
const BYTES = 20_971_521

/** Stores parts of a text. */
async function writeText({ store }: World, kind: LargeTextKind, id: string, ...texts: string[]): Promise<ReceivedText> {
  for (const [seq, text] of texts.entries()) {
    assert.equal(await store.largeTexts.append({ id, kind, owner: OWNER, seq, text, nowMs: T0 }), true)
  }
  return { id, bytes: BYTES, parts: texts.length }
}

async function write(world: World, id: string, ...texts: string[]): Promise<ReceivedOutput> {
  return { ...(await writeText(world, 'output', id, ...texts)), url: 'http://host/status' }
}

/** Removes what can be removed, part by part. @returns the number of calls that removed something */
async function removeAll({ store }: World, beforeMs: number): Promise<number> {
  let calls = 0
  while (await store.largeTexts.removeUnused(beforeMs, 1)) calls += 1
  return calls
}

/** Texts that are too large for one row. */
export const largeTextCases: Cases = {
  'parts of a text are read as they were written, and others are not there': async world => {
    const { largeTexts } = world.store
    await write(world, 'a', '["ä', '語😀', '#12345678"]')
    const parts = [0, 1, 2, 3].map(seq => largeTexts.part('a', seq))
    assert.deepEqual(await Promise.all(parts), ['["ä', '語😀', '#12345678"]', null])
    assert.equal(await largeTexts.part('b', 0), null)
  },

  'the end of a job takes its output, and whoever reads the job gets it': async world => {
    await world.holder(W1, 'a')
    const largeOutput = await write(world, 'text', '[1', ']')
    const done = await world.finish('a', W1, { ...DONE, output: null, largeOutput })
    assert.deepEqual(done?.job.largeOutput, { id: 'text', bytes: BYTES })
    assert.equal(done?.usage.outputBytes, BYTES)
    assert.deepEqual(await world.read('a'), done?.job)
    assert.equal((await world.store.jobRecords.find(E1, jobId('a'), T0, true))?.hasLargeOutput, true)
    assert.equal(await removeAll(world, T0 + 1), 0, 'it is in use')
    assert.equal(await world.store.largeTexts.part('text', 1), ']')
  },

  'its webhook has the address in place of the output': async world => {
    await world.worker()
    await world.job('a', { webhook: 'http://example.com' })
    await world.claim()
    const largeOutput = await write(world, 'text', '[]')
    await world.finish('a', W1, { ...DONE, output: null, largeOutput })
    const [due] = await world.store.webhooks.due({ owner: OWNER, nowMs: T0 + 1_000, limit: 1 })
    const message = JSON.parse((await world.store.webhooks.open(due!.id))!.payload)
    assert.deepEqual([message.outputUrl, message.output, message.status], [largeOutput.url, undefined, 'COMPLETED'])
  },

  'a result that no longer counts leaves its output to nobody': async world => {
    await world.holder(W1, 'a')
    await world.worker(W2)
    const largeOutput = await write(world, 'text', '[', ']')
    assert.equal(await world.finish('a', W2, { ...DONE, output: null, largeOutput }), null)
    assert.equal(await removeAll(world, T0), 0, 'it may still be received')
    assert.equal(await world.store.largeTexts.giveUp('text', 9), false)
    assert.equal(await world.store.largeTexts.part('text', 0), null)
  },

  'a result whose parts are not all there ends no job': async world => {
    await world.holder(W1, 'a', 'b')
    const largeOutput = await write(world, 'text', '[', ']')
    const given = (output: ReceivedOutput) => world.finish('a', W1, { ...DONE, output: null, largeOutput: output })
    await assert.rejects(given({ ...largeOutput, parts: 3 }), { code: 'unavailable' })
    assert.deepEqual([await world.store.largeTexts.giveUp('text', 1), await removeAll(world, 1)], [true, 2])
    await assert.rejects(given(largeOutput), { code: 'unavailable' })
    assert.deepEqual([(await world.read('a')).status, (await world.read('b')).status], ['IN_PROGRESS', 'IN_PROGRESS'])
    const late = { id: 'text', kind: 'output', owner: OWNER, seq: 2, text: '1', nowMs: T0 } as const
    assert.equal(await world.store.largeTexts.append(late), false, 'what is given up grows no more')
  },

  'what is received, and what is given up until it is removed, is unused': async world => {
    const { largeTexts, quotas } = world.store
    await world.holder('w1', 'a')
    const largeOutput = await write(world, 'used', '1', '2')
    await world.finish('a', W1, { ...DONE, output: null, largeOutput }, T0 + 10)
    assert.equal(await quotas.unusedTexts(OWNER), 0)
    await write(world, 'other', '1', '2', '3')
    const unused = await quotas.unusedTexts(OWNER)
    assert.ok(unused >= 3 && unused % 3 === 0)
    assert.deepEqual([await largeTexts.giveUp('other', 2), await quotas.unusedTexts(OWNER)], [true, unused])
    assert.deepEqual([await largeTexts.giveUp('other', 2), await quotas.unusedTexts(OWNER)], [false, 0])
    assert.equal(await largeTexts.giveUp('used', 2), false)
    assert.equal(await largeTexts.part('used', 1), '2')
  },

  'a text that is not continued is removed, one part at a time': async world => {
    const { largeTexts } = world.store
    await write(world, 'old', '1', '2', '3')
    await largeTexts.append({ id: 'new', kind: 'output', owner: OWNER, seq: 0, text: '1', nowMs: T0 + 10 })
    assert.equal(await largeTexts.removeUnused(T0 + 5, 2), true)
    assert.deepEqual([await largeTexts.part('old', 1), await largeTexts.part('old', 2)], [null, '3'])
    assert.equal(await removeAll(world, T0 + 5), 2)
    assert.deepEqual([await largeTexts.part('old', 2), await largeTexts.part('new', 0)], [null, '1'])
  },

  'a job that goes, or is retried, leaves its output to be removed': async world => {
    await world.holder(W1, 'a', 'b')
    for (const id of ['a', 'b']) {
      const largeOutput = await write(world, `text-${id}`, '[]')
      await world.finish(id, W1, { ...BROKEN, largeOutput }, T0 + 10)
    }
    await world.store.jobOutcomes.retry(E1, jobId('a'), T0 + 20, T0 + 20)
    assert.equal((await world.read('a')).largeOutput, undefined)
    assert.equal(await removeAll(world, T0), 2, 'at once')
    await world.store.jobRecords.remove(E1, jobId('b'), T0 + 20)
    assert.equal(await removeAll(world, T0), 2, 'at once')
    assert.equal(await world.store.largeTexts.part('text-b', 0), null)
  },

  'the insert of a job takes its input, and each claim has it': async world => {
    await world.worker()
    const largeInput = await writeText(world, 'input', 'in', '{"a":', '1}')
    await world.job('a', { input: '', largeInput })
    const [claimed] = await world.claim()
    assert.deepEqual([claimed?.input, claimed?.largeInput], ['', { id: 'in', bytes: BYTES }])
    assert.equal(await removeAll(world, T0 + 1), 0, 'it is in use')
    const largeOutput = await write(world, 'out', '[]')
    await world.finish('a', W1, { ...BROKEN, largeOutput }, T0 + 10)
    await world.store.jobOutcomes.retry(E1, jobId('a'), T0 + 20, T0 + 20)
    assert.equal(await removeAll(world, T0), 2, 'its output only')
    assert.equal((await world.claim())[0]?.largeInput?.id, 'in')
    assert.deepEqual((await world.store.jobRecords.find(E1, jobId('a'), T0, true))?.largeInput, {
      id: 'in',
      bytes: BYTES,
    })
  },

  'several jobs at once may have a large input beside requests of batches': async world => {
    await world.worker()
    await world.job('a', { input: '', position: T0, largeInput: await writeText(world, 'input', 'in', '{}') })
    await running(world, 'b', numberedIds('b', 2))
    const claimed = await world.claim(W1, 3)
    assert.deepEqual(
      claimed.map(({ id, largeInput }) => [id, largeInput?.id]),
      [
        ['a', 'in'],
        ['b-0', undefined],
        ['b-1', undefined],
      ],
    )
  },

  'an input whose parts are not all there makes no job': async world => {
    const largeInput = await writeText(world, 'input', 'in', '{', '}')
    const given = { input: '', largeInput: { ...largeInput, parts: 3 } }
    await assert.rejects(world.job('a', given), { code: 'unavailable' })
    assert.equal(await world.store.jobs.find(E1, jobId('a'), T0), null)
  },

  'a deleted endpoint leaves the texts of its jobs to be removed at once': async world => {
    await world.worker()
    await world.job('a', { input: '', largeInput: await writeText(world, 'input', 'in', '{}') })
    await world.claim()
    await world.finish('a', W1, { ...DONE, output: null, largeOutput: await write(world, 'out', '[]') }, T0 + 10)
    assert.ok(await world.store.endpoints.remove(E1, T0 + 20))
    while ((await world.store.removals.removePart(E1, T0 + 30, 10)).more);
    assert.equal(await removeAll(world, T0), 4)
  },

  'a large text does not displace the records of other jobs': async world => {
    await world.worker()
    const rules = { ...JOB_RECORD_RULES, payloads: true, maxBytes: BYTES - 1 }
    await world.jobs('a', 'b')
    await world.claim(W1, 2)
    await world.finish('a', W1, DONE, T0 + 10)
    const largeOutput = await write(world, 'out', '[]')
    await world.finish('b', W1, { ...DONE, output: null, largeOutput }, T0 + 20)
    await world.job('c', { input: '', largeInput: await writeText(world, 'input', 'in', '{}') })
    await world.claim()
    await world.finish('c', W1, DONE, T0 + 30)
    for (const id of ['a', 'b', 'c']) await world.store.jobs.setExpiry(E1, jobId(id), T0 + 40, T0 + 30)
    while ((await world.store.jobOutcomes.removeExpired(T0 + 50, 10, rules)).more);
    while (await world.store.jobRecords.trim(rules, T0 + 50, 10));
    const records = await Promise.all(
      ['a', 'b', 'c'].map(id => world.store.jobRecords.find(E1, jobId(id), T0 + 50, true)),
    )
    assert.deepEqual(
      records.map(record => [record?.id, record?.largeInput, record?.hasLargeOutput]),
      [
        ['a', null, false],
        ['b', null, false],
        ['c', null, false],
      ],
    )
  },

  'the record of a failed job keeps its input, and leaves it when that ends': async world => {
    await world.worker()
    const rules = { ...JOB_RECORD_RULES, failedInputsKeptMs: 1_000 }
    for (const id of ['a', 'b']) {
      await world.job(id, { input: '', largeInput: await writeText(world, 'input', `in-${id}`, '{}') })
      await world.claim()
      await world.finish(id, W1, id === 'a' ? BROKEN : DONE, T0 + 10)
      await world.store.jobs.setExpiry(E1, jobId(id), T0 + 20, T0 + 10)
    }
    while ((await world.store.jobOutcomes.removeExpired(T0 + 30, 10, rules)).more);
    const record = async (id: string) => world.store.jobRecords.find(E1, jobId(id), T0 + 30, true)
    assert.deepEqual(
      [(await record('a'))?.largeInput, (await record('b'))?.largeInput],
      [{ id: 'in-a', bytes: BYTES }, null],
    )
    assert.equal(await removeAll(world, T0 + 40), 2, 'that of the job that succeeded')
    assert.equal(await world.store.largeTexts.part('in-a', 0), '{}')
    await world.store.jobRecords.trim(rules, T0 + 5_000, 10)
    assert.equal((await record('a'))?.largeInput, null)
    assert.equal(await removeAll(world, T0), 2, 'at once')
  },
}
