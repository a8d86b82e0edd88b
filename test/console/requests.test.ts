import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JobRecord, JobSummary } from '../../console/client/api-types.d.ts'
import { parseExact } from '../../console/pages/endpoint/requests/exact-json.ts'
import { firstLine, readError } from '../../console/pages/endpoint/requests/job-error.ts'
import {
  actionQuery,
  filterFromQuery,
  isFiltered,
  jobQuery,
  mayHave,
} from '../../console/pages/endpoint/requests/job-filter.ts'
import { storySteps } from '../../console/pages/endpoint/requests/job-story.ts'
import { type InputStorage, keepInput, lastInputs } from '../../console/pages/endpoint/requests/last-inputs.ts'
import { movedRow } from '../../console/pages/endpoint/requests/moved-jobs.ts'
import {
  buildCall,
  chatDelta,
  curlCommand,
  innerInput,
  inputProblem,
  NO_OPTIONS,
} from '../../console/pages/endpoint/requests/run-call.ts'
import { cutOutput } from '../../console/pages/endpoint/requests/save-large.ts'

test('the output is cut out of the answer of a job, and not where its place is uncertain', async () => {
  const output = '{"output":"é","id":12345678901234567890}'
  const answer = new Blob([`{"delayTime":1,"id":"a","output":${output},"status":"COMPLETED"}`])
  const size = Buffer.byteLength(output)
  assert.equal(await (await cutOutput(answer, size)).text(), output)
  for (const other of [null, size + 1, size - 1]) assert.equal(await cutOutput(answer, other), answer)
})

const NOW = Date.parse('2026-11-26T12:00:00Z')

describe('the filter of the list', () => {
  test('is in the address, and what makes no sense there is left out', () => {
    const filter = filterFromQuery(
      new URLSearchParams('status=FAILED,NONSENSE&span=1h&error=%20memory%20&from=yesterday'),
    )
    assert.deepEqual(jobQuery(filter, NOW), { status: 'FAILED', error: 'memory', from: '2026-11-26T11:00:00.000Z' })
    assert.equal(isFiltered(filterFromQuery(new URLSearchParams('job=x&span=toString'))), false)
  })

  test('has times of its own only without a span', () => {
    const at = '2026-11-26T10:00:00.000Z'
    assert.deepEqual(jobQuery(filterFromQuery(new URLSearchParams({ from: at, to: at })), NOW), { from: at, to: at })
    assert.equal(jobQuery(filterFromQuery(new URLSearchParams({ span: '15m', from: at, to: at })), NOW).to, undefined)
  })

  test('is narrowed to the states that an action is for', () => {
    const of = (query: string) => filterFromQuery(new URLSearchParams(query))
    assert.equal(actionQuery(of('worker=w'), 'cancel', NOW)?.status, 'IN_QUEUE,IN_PROGRESS')
    assert.equal(actionQuery(of('status=FAILED,COMPLETED'), 'retry', NOW)?.status, 'FAILED')
    assert.equal(actionQuery(of('status=COMPLETED'), 'retry', NOW), null)
  })
})

test('a row follows the events of its job, and leaves a list whose filter it no longer matches', () => {
  const row = { status: 'IN_QUEUE', createdAt: 1_000, startedAt: null, workerId: null } as JobSummary
  const runs = movedRow(row, { status: 'IN_PROGRESS', atMs: 3_000, workerId: 'w' })
  assert.deepEqual([runs.delayTime, runs.startedAt, runs.workerId], [2_000, 3_000, 'w'])
  const ended = movedRow(runs, { status: 'COMPLETED', atMs: 8_000, workerId: null })
  assert.deepEqual([ended.status, ended.executionTime, ended.workerId], ['COMPLETED', 5_000, 'w'])
  assert.equal(movedRow(ended, { status: 'COMPLETED', atMs: 9_000, workerId: null }), ended)
  const of = (query: string) => filterFromQuery(new URLSearchParams(query))
  assert.equal(mayHave(of('status=IN_QUEUE'), 'CANCELLED'), false)
  assert.equal(mayHave(of('error=memory'), 'IN_QUEUE'), false)
  assert.equal(mayHave(of('worker=w'), 'IN_QUEUE'), true)
})

describe('errors of jobs', () => {
  test('of the SDKs show type and message, and the traceback apart', () => {
    const error = JSON.stringify({
      error_type: "<class 'ValueError'>",
      error_message: 'bad "size"',
      error_traceback: 'Traceback\n  File "a.py", line 1',
    })
    assert.deepEqual(readError(error), { title: 'ValueError: bad "size"', trace: 'Traceback\n  File "a.py", line 1' })
    const cut = error.slice(0, error.indexOf('size') + 2)
    assert.equal(firstLine(cut), 'ValueError: bad "si')
  })

  test('that are texts show their first line first', () => {
    assert.deepEqual(readError('out of memory\n  at x\n'), { title: 'out of memory', trace: '  at x' })
    assert.deepEqual(readError('{"other": 1}'), { title: '{"other": 1}', trace: null })
  })
})

test('numbers of inputs and outputs stay as they are written', () => {
  for (const number of ['12345678901234567890', '18446744073709551615', '1.0', '1e400', '-0', '1E5', '0.1', '5']) {
    const text = `{"seed":${number},"n":5,"f":[1.5,${number}],"s":"12345678901234567890 1.0"}`
    assert.equal(JSON.stringify(parseExact(text)), text)
  }
})

describe('the runner', () => {
  test('sends an input as it was typed, with the options that are set', () => {
    const options = { ...NO_OPTIONS, webhook: ' https://a.b ', executionTimeout: '60', lowPriority: true }
    const { path, body } = buildCall('my ep', 'run', '{"seed": 12345678901234567890}\n', options)
    assert.equal(path, '/v2/my%20ep/run')
    assert.match(body, /"seed": 12345678901234567890\}/)
    assert.deepEqual(JSON.parse(body).policy, { executionTimeout: 60_000, lowPriority: true })
    assert.equal(JSON.parse(body).webhook, 'https://a.b')
  })

  test('lets the server say what is wrong with a number', () => {
    const { body } = buildCall('e', 'run', '{}', { ...NO_OPTIONS, ttl: 'soon' })
    assert.equal(JSON.parse(body).policy.ttl, 'soon')
  })

  test('refuses what is no input before it is sent', () => {
    assert.notEqual(inputProblem('{', 'run'), null)
    assert.notEqual(inputProblem('[1]', 'run'), null)
    assert.equal(inputProblem('{}', 'run'), null)
    assert.notEqual(inputProblem('{}', 'openai'), null)
    assert.equal(inputProblem('{"messages": []}', 'openai'), null)
  })

  test('notices a whole request in the place of an input', () => {
    assert.deepEqual(JSON.parse(innerInput('{"input": {"a": 1}, "webhook": "x"}') ?? ''), { a: 1 })
    assert.equal(innerInput('{"input": {"a": 1}, "prompt": "x"}'), null)
    assert.equal(innerInput('nonsense'), null)
  })

  test('shows commands in which no input ends its quotes', () => {
    const command = curlCommand('http://h', 'e', 'run', buildCall('e', 'run', `{"a": "it's; rm -rf /"}`, NO_OPTIONS))
    assert.match(command, /it'\\''s; rm -rf/)
    assert.doesNotMatch(command, /Bearer [^$]/)
    assert.match(curlCommand('http://h', 'e', 'stream', buildCall('e', 'stream', '{}', NO_OPTIONS)), /stream\/\$JOB/)
  })

  test('takes the text out of the events of a chat', () => {
    assert.equal(chatDelta('{"choices":[{"delta":{"content":"Hi"}}]}'), 'Hi')
    assert.equal(chatDelta('{"choices":[]}'), null)
    assert.equal(chatDelta('[DONE]'), null)
  })
})

describe('the last inputs', () => {
  function storage(text: string | null = null): InputStorage & { text: string | null } {
    return {
      text,
      getItem() {
        return this.text
      },
      setItem(_, value) {
        this.text = value
      },
    }
  }

  test('are ten of an endpoint, the newest first, each once', () => {
    const kept = storage()
    for (let at = 0; at < 12; at += 1) keepInput('e', `{"at": ${at}}`, kept)
    keepInput('e', '{"at": 5}', kept)
    const inputs = lastInputs('e', kept)
    assert.equal(inputs.length, 10)
    assert.deepEqual(inputs.slice(0, 2), ['{"at": 5}', '{"at": 11}'])
    assert.deepEqual(lastInputs('other', kept), [])
  })

  test('are bounded in endpoints and size, and a broken storage counts as empty', () => {
    const kept = storage()
    for (let at = 0; at < 30; at += 1) keepInput(`e${at}`, '{}', kept)
    assert.deepEqual(lastInputs('e0', kept), [])
    assert.deepEqual(lastInputs('e29', kept), ['{}'])
    keepInput('e29', `"${'x'.repeat(100_000)}"`, kept)
    assert.deepEqual(lastInputs('e29', kept), ['{}'])
    for (const broken of ['[', '[]', 'null', '{"e": 5}', '{"e": [1]}'])
      assert.deepEqual(lastInputs('e', storage(broken)), [])
  })
})

describe('the story of a job', () => {
  const JOB: JobRecord = {
    id: 'j',
    status: 'FAILED',
    createdAt: 1_000,
    startedAt: 5_000,
    completedAt: 7_000,
    resultExpiresAt: 90_000,
    delayTime: 4_000,
    executionTime: 2_000,
    workerId: 'w',
    attempts: 2,
    retries: 1,
    inputBytes: 2,
    outputBytes: null,
    error: 'out of memory\nat x',
    errorFingerprint: null,
    policy: { executionTimeout: 1, ttl: 1, lowPriority: false },
    notes: [
      {
        at: 3_000,
        workerId: 'v',
        kind: 'lost',
        text: 'attempt 1 was lost: it exited with code 3; its last lines were:\nKilled',
      },
    ],
  }

  test('has the wait, lost attempts, the start of its worker, the attempt, its end and the tries of its webhook, in this order', () => {
    const at = (ms: number) => new Date(ms).toISOString()
    const worker = {
      id: 'w',
      readyAt: at(4_900),
      exitedAt: null,
      exit: null,
      timeLine: [
        { phase: 'starting' as const, startedAt: at(3_500), ms: 1_400 },
        { phase: 'ready' as const, startedAt: at(4_900), ms: 100 },
      ],
    }
    const tries = [{ at: at(7_100), tookMs: 5, error: 'connect ECONNREFUSED' }]
    const delivery = {
      id: 'd',
      state: 'PENDING' as const,
      jobStatus: 'FAILED',
      address: 'https://example.com/hook',
      createdAt: at(7_000),
      nextTryAt: at(17_100),
      tries,
    }
    const steps = storySteps({ job: JOB, worker, webhooks: [delivery] }, 20_000)
    assert.deepEqual(
      steps.map(({ title, ms }) => [title, ms]),
      [
        ['Accepted and queued', null],
        ['Attempt 1 was lost: it exited with code 3', null],
        ['Worker process starts', 1_400],
        ['Attempt 2 ran', 2_000],
        ['Failed', null],
        ['Webhook try 1: no response', 5],
        ['Webhook is tried again', null],
      ],
    )
    assert.equal(steps[1]!.detail, 'its last lines were:\nKilled')
    assert.equal(steps[4]!.detail, 'out of memory')
  })

  test('leaves out a start of the worker that was over before the job came', () => {
    const timeLine = [{ phase: 'starting' as const, startedAt: new Date(0).toISOString(), ms: 500 }]
    const worker = { id: 'w', readyAt: null, exitedAt: null, exit: null, timeLine }
    const steps = storySteps({ job: { ...JOB, notes: [] }, worker, webhooks: [] }, 20_000)
    assert.deepEqual(
      steps.map(({ title }) => title),
      ['Accepted and queued', 'Attempt 2 ran', 'Failed'],
    )
  })

  test('grows while the job waits, and says when a client queued it again', () => {
    const waiting: JobRecord = {
      ...JOB,
      retries: 0,
      status: 'IN_QUEUE',
      startedAt: null,
      completedAt: null,
      error: null,
      notes: [],
    }
    assert.equal(storySteps({ job: waiting, worker: null, webhooks: [] }, 4_000)[0]!.ms, 3_000)
    const notes = [
      {
        at: 1_000,
        workerId: 'v',
        kind: 'retried' as const,
        text: 'attempt 1 was FAILED, and a client queued the job again; x',
      },
    ]
    const again = storySteps({ job: { ...waiting, notes }, worker: null, webhooks: [] }, 4_000)
    assert.ok(again.some(({ title }) => title === 'Queued again by a client'))
  })
})
