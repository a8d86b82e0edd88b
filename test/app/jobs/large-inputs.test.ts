import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EndpointId, JobId } from '../../../src/core/ids.ts'
import type { LargeText } from '../../../src/core/jobs/large-text.ts'
import { type Answer, openRig, type Rig, type RigOptions, type RigWorker } from '../../support/rig.ts'

const MEGABYTE = 1_048_576
/** More than an input has that is held in memory. */
const LETTERS = 20 * MEGABYTE
/** An input of so many bytes, with the mark of sealed texts, a number that no double has and a letter of two bytes. */
const INPUT = `{"a": "${'sealed:'.repeat(LETTERS / 7)}", "b":12345678901234567890,"c":["é"]}`
const BODY = `{"input": ${INPUT} ,"policy":{"executionTimeout":60000},"webhook":"","more":{"input":1}}`

interface Running {
  readonly rig: Rig
  readonly endpoint: EndpointId
  readonly worker: RigWorker
}

/** A server that takes inputs of 64 MB, and a worker. */
async function running(t: Parameters<typeof openRig>[0], options: RigOptions = {}): Promise<Running> {
  const rig = await openRig(t, { inputBytes: 64 * MEGABYTE, ...options })
  return { rig, ...(await rig.endpointWithWorker({ workersMax: 1 })) }
}

/** Sends a body, which says how long it is unless `headers` are given. */
function send({ rig, endpoint }: Running, body: string | Uint8Array, headers?: Record<string, string>, path = 'run') {
  const length = { 'content-length': String(Buffer.byteLength(body)) }
  return rig.ask('POST', `/v2/${endpoint}/${path}`, { body, headers: headers ?? length })
}

async function submit(running: Running, body = BODY): Promise<JobId> {
  const { status, text, json } = await send(running, body)
  assert.deepEqual([status, json?.status], [200, 'IN_QUEUE'], text)
  await running.rig.clock.settle()
  return json.id
}

/** Asserts that a take has this job with {@link INPUT}, character for character. */
function assertTaken({ status, text, headers }: Answer, id: JobId): void {
  assert.equal(status, 200, text.slice(0, 200))
  assert.ok(text.startsWith(`{"id":"${id}","input":${INPUT},"policy":{"executionTimeout":60000}`), text.slice(0, 200))
  assert.equal(Number(headers.get('content-length')), Buffer.byteLength(text))
  assert.equal(headers.get('content-type'), 'application/json')
}

/** Asserts that all parts that neither a job nor a record has were given up. */
async function assertNothingKept({ rig: { store } }: Running): Promise<void> {
  while (await store.largeTexts.removeUnused(1, 1_000));
  assert.equal(await store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'parts are left')
}

async function largeInput({ rig, endpoint }: Running, id: JobId): Promise<LargeText> {
  const record = await rig.store.jobRecords.find(endpoint, id, rig.clock.now(), true)
  assert.ok(record?.largeInput != null)
  return record.largeInput
}

test('an input above 20 MB reaches its worker character for character, and readers have its address', async t => {
  const run = await running(t)
  const { rig, endpoint, worker } = run
  const id = await submit(run)
  assertTaken(await worker.take(), id)
  await worker.done(id, { error: 'no' })
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests/${id}`)
  const address = `http://localhost:8080/v2/${endpoint}/requests/${id}/input`
  assert.deepEqual([json.status, json.input, json.inputUrl], ['FAILED', null, address])
  assert.equal(json.inputBytes, Buffer.byteLength(INPUT))
  const { text, headers } = await rig.ask('GET', address.slice('http://localhost:8080'.length))
  assert.ok(text === INPUT)
  assert.equal(Number(headers.get('content-length')), Buffer.byteLength(INPUT))

  // It runs again with the same input; its copy does, too, and is there for itself.
  assert.equal((await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)).json.status, 'IN_QUEUE')
  assertTaken(await worker.take(), id)
  await worker.done(id)
  const again = await rig.ask('POST', `/v2/${endpoint}/requests/${id}/replay`)
  assert.equal(again.status, 200, again.text)
  await rig.ask('DELETE', `/v2/${endpoint}/requests/${id}`)
  while (await rig.store.largeTexts.removeUnused(1, 1_000));
  const replayed = await worker.take()
  assert.ok(replayed.text.startsWith(`{"id":"${again.json.id}","input":${INPUT},"policy":{`))
  await worker.done(again.json.id)
  await rig.ask('DELETE', `/v2/${endpoint}/requests/${again.json.id}`)
  await assertNothingKept(run)
})

test('one of runsync that does not say how long it is passes the same way, and one key stands for one job', async t => {
  const run = await running(t)
  const { rig, endpoint, worker } = run
  const key = { 'idempotency-key': 'k' }
  const waiting = send(run, BODY, key, 'runsync')
  const taken = await worker.take()
  const id = taken.json.id as JobId
  assertTaken(taken, id)
  await worker.done(id)
  assert.deepEqual([(await waiting).json.id, (await waiting).json.status], [id, 'COMPLETED'])
  assert.equal((await send(run, BODY, key, 'runsync')).json.id, id)
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
  while (await rig.store.largeTexts.removeUnused(1, 1_000));
  assert.equal(await rig.store.largeTexts.part((await largeInput(run, id)).id, 0).then(part => part !== null), true)
})

test('an input up to 20 MB in a longer body is one as any other', async t => {
  const run = await running(t)
  const id = await submit(run, `{"more":"${'x'.repeat(LETTERS)}","input":{"a":"${'y'.repeat(2 * MEGABYTE)}"}}`)
  const { text } = await run.worker.take()
  assert.equal(text, `{"id":"${id}","input":{"a":"${'y'.repeat(2 * MEGABYTE)}"}}`)
  await assertNothingKept(run)
})

test('what is refused leaves nothing, with the sentences of small bodies', async t => {
  const run = await running(t, { inputBytes: LETTERS + MEGABYTE })
  const long = 'x'.repeat(LETTERS)
  const noUtf8 = Buffer.from(BODY)
  noUtf8[LETTERS] = 0xff
  for (const [body, status, error] of [
    [`["${long}"]`, 400, /^the body must be a JSON object with an "input" object$/],
    [
      `{"input":["${long}"],"policy":1}`,
      400,
      /^"input" must be a JSON object, not an array; "policy" must be an object$/,
    ],
    [`{"inputs":{"a":"${long}"}}`, 400, /^"input" is missing; it must be a JSON object$/],
    [`${BODY}!`, 400, /^the body is not JSON: there is an unexpected character after \d+ characters$/],
    [noUtf8, 400, /^the request body is not UTF-8$/],
    [
      `{"input":{"a":"${long}${'x'.repeat(MEGABYTE)}"}}`,
      413,
      /^the request body is too large: .*, the limit is 22020096 bytes$/,
    ],
  ] as const) {
    // Only the size depends on what the head says.
    for (const headers of status === 413 ? [undefined, {}] : [undefined]) {
      const answer = await send(run, body, headers)
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.json.error, error)
    }
  }
  assert.equal((await run.rig.health(run.endpoint)).jobs.inQueue, 0)
  assert.equal(await run.rig.store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'parts are left')
})

test('texts that nothing has any more are removed sooner than clients can send others', async t => {
  const { rig, endpoint } = await running(t)
  const { owner } = (await rig.store.endpoints.find(endpoint))!
  for (let seq = 0; seq < 1_000; seq += 1)
    await rig.store.largeTexts.append({ id: 'text', kind: 'input', owner, seq, text: 'x', nowMs: 1 })
  await rig.clock.advance(10_000)
  assert.equal(await rig.store.largeTexts.part('text', 999), null)
})

test('a store that fails in the middle or at the end keeps nothing', async t => {
  const run = await running(t)
  for (const method of ['largeTexts.append', 'jobs.insert'] as const) {
    run.rig.failNext(method, 'before')
    assert.equal((await send(run, BODY)).status, 503)
  }
  assert.equal((await run.rig.health(run.endpoint)).jobs.inQueue, 0)
  await assertNothingKept(run)
})

test('a failed job is replayed with its input after its result is gone, until that is no longer kept', async t => {
  const run = await running(t)
  const { rig, endpoint, worker } = run
  const id = await submit(run)
  await worker.take()
  await worker.done(id, { error: 'no' })
  await rig.clock.leap(31 * 60_000)
  await rig.clock.advance(2_000)
  assert.equal((await rig.status(endpoint, id)).status, 404)
  while (await rig.store.largeTexts.removeUnused(rig.clock.now() + 1, 1_000));
  const { json } = await rig.ask('GET', `/v2/${endpoint}/requests/${id}`)
  assert.match(json.inputUrl, /\/input$/)
  assert.match((await rig.ask('POST', `/v2/${endpoint}/retry/${id}`)).json.error, /submit its input as a new job/)
  const again = (await rig.ask('POST', `/v2/${endpoint}/requests/${id}/replay`)).json.id
  assert.ok((await worker.take()).text.startsWith(`{"id":"${again}","input":${INPUT},`))
  await worker.done(again)
  await rig.clock.leap(24 * 60 * 60_000)
  await rig.clock.advance(120_000)
  const refused = await rig.ask('POST', `/v2/${endpoint}/requests/${id}/replay`)
  assert.equal(refused.status, 409, refused.text)
  assert.equal((await rig.ask('GET', `/v2/${endpoint}/requests/${id}/input`)).status, 404)
  await assertNothingKept(run)
})

test('a take has one large input at most; one that is lost counts no attempt, one that is damaged fails', async t => {
  const run = await running(t, { sealPayloads: true })
  const { rig, endpoint, worker } = run
  const small = await rig.submit(endpoint)
  const ids = [await submit(run), await submit(run)]
  const { id: textId } = await largeInput(run, ids[0]!)
  assert.match((await rig.store.largeTexts.part(textId, 3))!, /^sealed:/)
  const lost = await worker.take({ batch: 3, delivered: false })
  assert.deepEqual(
    lost.json.map((job: { id: JobId }) => job.id),
    [small, ids[0]],
  )
  await rig.clock.settle()
  assert.deepEqual((await rig.health(endpoint)).jobs.inQueue, 3)
  rig.failNext('largeTexts.part', 'before')
  await assert.rejects(worker.take({ batch: 3, delivered: false }))
  await rig.clock.advance(1_000)
  const taken = await worker.take({ batch: 3 })
  assert.ok(taken.text.includes(`{"id":"${ids[0]}","input":${INPUT},`))
  assert.equal((await rig.job(endpoint, ids[0]!)).attempt, 1)

  // A part in the place of another one, as damage of the database.
  const [first, second] = (await rig.store.seals.list('largeTextParts', (await largeInput(run, ids[1]!)).id, 2)) ?? []
  await rig.store.seals.replace('largeTextParts', [{ id: first!.id, previous: first!.sealed, next: second!.sealed }])
  await assert.rejects(worker.take({ delivered: false }))
  const { json: failed } = await rig.status(endpoint, ids[1]!)
  assert.deepEqual([failed.status, failed.error !== undefined], ['FAILED', true], JSON.stringify(failed))
})
