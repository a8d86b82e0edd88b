import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import { openRig, type Rig, type RigOptions, type RigWorker } from '../../support/rig.ts'

const MEGABYTE = 1_048_576
/** More than a result has that is held in memory. */
const LETTERS = 20 * MEGABYTE
/** An output of so many bytes, with a number that no double has and a letter of two bytes. */
const OUTPUT = `["${'x'.repeat(LETTERS)}", 12345678901234567890,"é"]`
const RESULT = `{"output": ${OUTPUT} ,"a":{"output":1}}`
const URL_ = 'https://example.com/hook'

interface Running {
  readonly rig: Rig
  readonly endpoint: EndpointId
  readonly worker: RigWorker
  readonly id: JobId
}

/** A server that takes results of 64 MB, and a worker that has a job. */
async function running(t: Parameters<typeof openRig>[0], options: RigOptions = {}, body = {}): Promise<Running> {
  const rig = await openRig(t, { resultBytes: 64 * MEGABYTE, ...options })
  const { endpoint, worker } = await rig.endpointWithWorker({ workersMax: 1 })
  const id = await rig.submit(endpoint, { input: {}, ...body })
  await worker.takeJob()
  return { rig, endpoint, worker, id }
}

/** A result as the relay passes it on, which says how long it is. */
const announced = (body: string) => ({ 'content-length': String(Buffer.byteLength(body)) })

/** Asserts that a job has failed for this reason, and that nothing of its result is kept. */
async function assertFailed({ rig, endpoint, id }: Running, error: RegExp): Promise<void> {
  const { json } = await rig.status(endpoint, id)
  assert.equal(json.status, 'FAILED')
  assert.match(json.error, error)
  assert.equal(json.output, undefined)
  await assertNothingKept(rig)
}

/** Asserts that all parts that no job has were given up. */
async function assertNothingKept({ store }: Rig): Promise<void> {
  while (await store.largeTexts.removeUnused(1, 100));
  assert.equal(await store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'parts are left')
}

test('a result above 20 MB reaches every reader of its job, character for character', async t => {
  const run = await running(t, {}, { webhook: URL_ })
  const { rig, endpoint, worker, id } = run
  const waiting = rig.ask('GET', `/v2/${endpoint}/status-sync/${id}?wait=60000`)
  assert.equal((await worker.done(id, RESULT, announced(RESULT))).status, 200)
  for (const { text, headers } of [await waiting, await rig.status(endpoint, id)]) {
    assert.ok(text.includes(`,"output":${OUTPUT},"status":"COMPLETED"`), text.slice(0, 200))
    assert.equal(Number(headers.get('content-length')), Buffer.byteLength(text))
  }
  const address = `http://localhost:8080/v2/${endpoint}/status/${id}`
  const { json: record } = await rig.ask('GET', `/v2/${endpoint}/requests/${id}`)
  assert.deepEqual([record.output, record.outputUrl, record.outputBytes], [null, address, Buffer.byteLength(OUTPUT)])
  await rig.clock.advance(1_000)
  const message = JSON.parse(rig.outbound.calls.map(({ body }) => String(body)).join(''))
  assert.deepEqual([message.id, message.output, message.outputUrl], [id, undefined, address])
  assert.equal((await rig.ask('DELETE', `/v2/${endpoint}/requests/${id}`)).status, 200)
  assert.equal(await rig.store.largeTexts.removeUnused(1, 100), true, 'its parts go at once')
})

test('one that does not say how long it is passes the same way', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  assert.equal((await worker.done(id, RESULT)).status, 200)
  assert.ok((await rig.status(endpoint, id)).text.includes(`"output":${OUTPUT},`))
})

test('an output up to 20 MB in a longer result is one as any other', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  const result = `{"more":"${'x'.repeat(LETTERS)}","output":"${'y'.repeat(2 * MEGABYTE)}","error":""}`
  await worker.done(id, result, announced(result))
  const job = await rig.job(endpoint, id)
  assert.deepEqual([job.output?.length, job.largeOutput], [2 * MEGABYTE + 2, undefined])
  await assertNothingKept(rig)
})

test('errors and values that JSON has not are read as in a small result', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  const result = `{"output":[NaN,"${'x'.repeat(LETTERS)}",-Infinity],"error":"Value\\u0045rror: \\"no\\""}`
  await worker.done(id, result, announced(result))
  const { text } = await rig.status(endpoint, id)
  assert.ok(text.includes(`,"output":[null,"${'x'.repeat(LETTERS)}",null],"error":"ValueError: \\"no\\"",`))
  assert.match(text, /"warning":"2 value\(s\) that JSON cannot hold/)
  const again = await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)
  assert.equal(again.json.status, 'IN_QUEUE')
  await assertNothingKept(rig)
})

for (const [what, result, error] of [
  ['text that is not JSON', `${RESULT}!`, /not JSON: there is an unexpected character after \d+ characters$/],
  ['text that breaks off', RESULT.slice(0, -1), /not JSON: it ends too early$/],
  ['two outputs', `{"output":1,"output":${OUTPUT}}`, /has the member "output" twice$/],
  ['brackets', '['.repeat(LETTERS), /too deep: it has more than 1000 levels/],
] as const) {
  test(`${what} fails the job and leaves nothing`, async t => {
    const run = await running(t)
    assert.equal((await run.worker.done(run.id, result, announced(result))).status, 200)
    await assertFailed(run, error)
  })
}

test('bytes that are no UTF-8 fail the job', async t => {
  const run = await running(t)
  const bytes = Buffer.from(RESULT)
  bytes[LETTERS] = 0xff
  await run.worker.done(run.id, bytes)
  await assertFailed(run, /not UTF-8$/)
})

test('a result above the limit fails the job with both sizes, and `why` names the setting', async t => {
  const run = await running(t, { resultBytes: LETTERS + 9 })
  await run.worker.done(run.id, RESULT, announced(RESULT))
  await assertFailed(run, new RegExp(`has ${Buffer.byteLength(RESULT)} bytes, the limit is ${LETTERS + 9} bytes$`))
  const { json } = await run.rig.ask('GET', `/v2/${run.endpoint}/explain/${run.id}`)
  assert.match(json.summary, /--max-result-mb of the server raises the limit/)
})

test('one that does not say its length fails with both sizes, too', async t => {
  const run = await running(t, { resultBytes: LETTERS + 9 })
  await run.worker.done(run.id, RESULT)
  await assertFailed(run, new RegExp(`has ${Buffer.byteLength(RESULT)} bytes`))
})

test('a large progress update is not kept, and says so', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  const update = `{"output":${OUTPUT},"status":"IN_PROGRESS"}`
  assert.equal((await worker.done(id, update, announced(update))).status, 200)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests/${id}`)
  assert.match(json.notes[0].text, /a progress update of \d+ bytes was not kept/)
  await assertNothingKept(rig)
})

test('a result of a job that was cancelled meanwhile is dropped', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  const posted = worker.done(id, RESULT, announced(RESULT))
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  assert.equal((await posted).status, 200)
  assert.equal((await rig.status(endpoint, id)).json.status, 'CANCELLED')
  await rig.clock.advance(10_000)
  assert.equal(await rig.store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'the server removed it')
})

test('a result of a job that its worker does not have is read, and nothing of it is stored', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  const waiting = await rig.submit(endpoint)
  await rig.ask('POST', `/v2/${endpoint}/cancel/${id}`)
  for (const job of [id, waiting, '00000000-0000-4000-8000-000000000000-u1' as JobId]) {
    assert.equal((await worker.done(job, RESULT, announced(RESULT))).status, 200)
  }
  assert.equal(rig.calls('largeTexts.append'), 0)
  assert.equal((await rig.job(endpoint, waiting)).status, 'IN_QUEUE')
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests/${id}`)
  assert.equal(json.status, 'CANCELLED')
  assert.match(json.notes.at(-1).text, /^a COMPLETED result came when the job was no longer this worker's$/)
  assert.equal(await worker.takeJob(), waiting)
})

test('a store that fails in the middle gets the result again', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  rig.failNext('largeTexts.append', 'before')
  assert.equal((await worker.done(id, RESULT, announced(RESULT))).status, 503)
  assert.equal((await rig.job(endpoint, id)).status, 'IN_PROGRESS')
  assert.equal((await worker.done(id, RESULT, announced(RESULT))).status, 200)
  assert.equal((await rig.job(endpoint, id)).status, 'COMPLETED')
  await assertNothingKept(rig)
})

test('a reader that stops is cut off, and one whose result goes away gets no whole answer', async t => {
  const { rig, endpoint, worker, id } = await running(t)
  await worker.done(id, RESULT, announced(RESULT))
  const slow = (await rig.open(`/v2/${endpoint}/status/${id}`)).body!.getReader()
  await slow.read()
  await rig.clock.advance(120_000)
  await assert.rejects(slow.read(), /the result was read too slowly/)
  const late = (await rig.open(`/v2/${endpoint}/status/${id}`)).body!.getReader()
  await late.read()
  await rig.ask('DELETE', `/v2/${endpoint}/requests/${id}`)
  while (await rig.store.largeTexts.removeUnused(rig.clock.now() + 1, 100));
  await assert.rejects(async () => {
    while (!(await late.read()).done);
  })
})
