/** JSON of half a million brackets: code that follows it level by level would hang, or run out of stack. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { type Answer, ask, makeEndpoint, runJob, statusOf, submit } from '../support/client.ts'
import { type RawWorker, silentEndpoint } from '../support/raw-worker.ts'
import { root } from '../support/server.ts'
import { type ProbedServer, startProbedServer } from './probed-server.ts'

const BRACKETS = 530_000
/** Bodies of management may have 1 MB. */
const FEWER = 100_000
const TOO_DEEP = /more than 1000 levels of lists and objects/

/** A value of so many levels. */
const SHAPES: Readonly<Record<string, (levels: number) => string>> = {
  lists: levels => `${'['.repeat(levels)}${']'.repeat(levels)}`,
  objects: levels => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`,
  'lists of objects': levels => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`,
  'lists after lists': levels => `${'[[],'.repeat(levels)}1${']'.repeat(levels)}`,
}

/** Routes to which clients send JSON, each with a body around a value. */
const ROUTES: Readonly<
  Record<string, (endpoint: string) => { path: string; body: (value: string) => string; levels?: number }>
> = {
  run: endpoint => ({ path: `/v2/${endpoint}/run`, body: value => `{"input":{"a":${value}}}` }),
  'the policy of run': endpoint => ({
    path: `/v2/${endpoint}/run`,
    body: value => `{"input":{},"policy":{"a":${value}}}`,
  }),
  'the webhook of run': endpoint => ({ path: `/v2/${endpoint}/run`, body: value => `{"input":{},"webhook":${value}}` }),
  runsync: endpoint => ({ path: `/v2/${endpoint}/runsync?wait=1000`, body: value => `{"input":{"a":${value}}}` }),
  batch: endpoint => ({ path: `/v2/${endpoint}/batch`, body: value => `{"requests":[{"input":{"a":${value}}}]}` }),
  OpenAI: endpoint => ({
    path: `/v2/${endpoint}/openai/v1/chat/completions`,
    body: value => `{"model":"m","messages":${value}}`,
  }),
  REST: () => ({ path: '/v2/templates', body: value => `{"name":"x","env":${value}}`, levels: FEWER }),
  'REST v1': () => ({ path: '/v1/templates', body: value => `{"name":"x","env":${value}}`, levels: FEWER }),
  GraphQL: () => ({ path: '/graphql', body: value => `{"query":"{ myself { id } }","variables":{"a":${value}}}` }),
}

describe('JSON that is too deep', () => {
  let server: ProbedServer
  let endpoint: string
  let worker: RawWorker
  /** Its jobs run on in the meantime. */
  let other: string

  before(async () => {
    server = await startProbedServer()
    const silent = await silentEndpoint(server)
    endpoint = silent.id
    worker = await silent.worker()
    other = await makeEndpoint(server, {
      folder: `${root}/examples/hello-node`,
      settings: { workersMin: 1, workersMax: 1, idleTimeout: 3600 },
    })
    await runJob(server, other, {})
    await runJobAlone({ output: 'warm' })
    server.forgetHolds()
  })

  const post = (path: string, body: string): Promise<Answer> => ask(server, path, { method: 'POST', body })

  /** The one job, with this as its result. */
  async function runJobAlone(result: unknown) {
    const job = await submit(server, endpoint, {})
    await worker.take()
    assert.equal((await worker.done(job, result)).status, 200)
    return statusOf(server, endpoint, job)
  }

  for (const [route, of] of Object.entries(ROUTES)) {
    for (const [shape, make] of Object.entries(SHAPES)) {
      test(`${route}: ${shape} are refused with a sentence`, async () => {
        const { path, body, levels = BRACKETS } = of(endpoint)
        const { status, text } = await post(path, body(make(levels)))
        assert.equal(status, 400)
        assert.match(text, TOO_DEEP)
      })
    }
  }

  for (const [shape, make] of Object.entries(SHAPES)) {
    test(`a result of ${shape} fails its job with a sentence`, async () => {
      const { status, error } = await runJobAlone(`{"output":${make(BRACKETS)}}`)
      assert.equal(status, 'FAILED')
      assert.match(String(error), TOO_DEEP)
    })

    test(`a chunk of ${shape} is not kept, and the job goes on`, async () => {
      const job = await submit(server, endpoint, {})
      await worker.take()
      assert.equal((await worker.chunk(job, `{"output":${make(BRACKETS)}}`)).status, 200)
      assert.equal((await worker.chunk(job, { output: 'after' })).status, 200)
      assert.equal((await worker.done(job, { output: 'done' })).status, 200)
      const { json } = await ask(server, `/v2/${endpoint}/stream/${job}`)
      assert.deepEqual(json.stream, [{ output: 'after' }])
    })
  }

  test('a Python literal that is too deep is an error text like any other', async () => {
    const asked = post(`/v2/${endpoint}/openai/v1/chat/completions`, '{"model":"m"}')
    const { id } = await worker.take()
    const error = `{'a': ${'('.repeat(BRACKETS)}${')'.repeat(BRACKETS)}}`
    assert.equal((await worker.done(id, { error })).status, 200)
    assert.equal((await asked).status, 500)
  })

  test('what is as deep as is allowed passes, from the client to the worker and back', async () => {
    const deep = SHAPES.lists!(997)
    const { json } = await post(`/v2/${endpoint}/run`, `{"input":{"a":${deep}}}`)
    const taken = await worker.take()
    assert.equal(JSON.stringify(taken.input), `{"a":${deep}}`)
    assert.equal((await worker.done(json.id, `{"output":${deep}}`)).status, 200)
    const { status, output } = await statusOf(server, endpoint, json.id)
    assert.equal(status, 'COMPLETED')
    assert.equal(JSON.stringify(output), deep)
  })

  test('others were served all the time', async () => {
    assert.equal((await runJob(server, other, {})).status, 'COMPLETED')
    server.assertNeverHeld()
  })
})
