/** The commands that show and change things, as a person and a script use them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { before, describe, test } from 'node:test'
import { indentedJson } from '../../../src/core/json/json-format.ts'
import { atEnd, temporaryFolder } from '../support/cleanup.ts'
import { graphql } from '../support/client.ts'
import { fixture, programFile, runCommand, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const program = programFile()
let server: Server

before(async () => {
  server = await startServer({ args: ['--worker', fixture('node-everyday'), '--delete-running-endpoints'] })
})

/** A command, whose output is for programs where it has such a form. */
async function runyard(...args: string[]) {
  const isPlain = args[0] === 'completion' || args[0] === '__complete' || args.includes('--help')
  return runCommand(isPlain ? args : [...args, '--json'], { RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey })
}

async function shown(...args: string[]) {
  const { code, stdout, stderr } = await runyard(...args)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

describe('commands for resources', () => {
  test('an endpoint is created, listed, read, changed and deleted', async () => {
    const flags = [
      '--image',
      'python:3.13',
      '--gpu',
      'ADA_24,AMPERE_24',
      '--max',
      '2',
      '--env',
      'A=1',
      '--env',
      'B=x=y',
    ]
    const made = await shown('endpoints', 'create', '--name', 'mine', ...flags, '--set', 'gpu.count=2')
    assert.deepEqual([made.type, made.gpu.pools, made.gpu.count], ['QUEUE', ['ADA_24', 'AMPERE_24'], 2])
    assert.deepEqual([made.env, made.workers.max], [{ A: '1', B: 'x=y' }, 2])
    const list = (await runyard('endpoints', 'list')).stdout.trim().split('\n')
    assert.ok(list.map(line => JSON.parse(line).id).includes(made.id))
    const changed = await shown('endpoints', 'update', made.id, '--max', '0', '--set', 'timeout=60000')
    assert.deepEqual([changed.workers, changed.timeout], [{ ...made.workers, max: 0 }, 60_000])
    assert.deepEqual(await shown('endpoints', 'get', made.id), changed)
    assert.deepEqual(await shown('endpoints', 'delete', made.id), { deleted: made.id })
    const gone = await runyard('endpoints', 'get', made.id)
    assert.deepEqual([gone.code, gone.stderr.startsWith(`runyard: endpoint ${made.id} not found; `)], [66, true])
  })

  test('runyard why covers all endpoints, however many pages that takes', async () => {
    const image = { image: 'python:3.13', cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }
    const create = async (number: number) => {
      const scaling = { type: 'REQUEST_COUNT', requestCount: 1 }
      const body = { type: 'QUEUE', name: `many ${number}`, ...image, scaling, workers: { min: 0, max: 1 } }
      const headers = { authorization: `Bearer ${server.apiKey}`, 'content-type': 'application/json' }
      const answer = await fetch(`${server.url}/v2/serverless`, { method: 'POST', headers, body: JSON.stringify(body) })
      assert.equal(answer.status, 201, await answer.clone().text())
      return ((await answer.json()) as { id: string }).id
    }
    const made: string[] = []
    for (let number = 0; number < 105; number += 1) made.push(await create(number))
    const { code, stdout } = await runyard('why')
    const told = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line).id)
    assert.deepEqual([code, made.filter(id => !told.includes(id))], [0, []])
    assert.equal(new Set(told).size, told.length)
  })

  test('a change of variables keeps the others, and says on standard error what it was, without their values', async () => {
    const say = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(args, {
        RUNYARD_URL: server.url,
        RUNYARD_API_KEY: server.apiKey,
      })
      assert.equal(code, 0, stderr)
      return { env: JSON.parse(stdout).env, said: stderr.split('\n').map(line => line.trim()) }
    }
    const first = ['--env', 'KEPT=1', '--env', 'OLD=secret-2', '--env', 'GONE=3']
    for (const [name, ...more] of [
      ['endpoints', '--cpu', '[{"id":"cpu3g","vcpuCount":2}]', '--max', '1'],
      ['templates', '--serverless'],
    ] as const) {
      const { id } = await shown(name, 'create', '--name', 'vars', '--image', 'image:1', ...more, ...first)
      const one = name.slice(0, -1)
      const changed = await say(name, 'update', id, '--env', 'NEW=4=4', '--env', 'OLD=secret-5', '--unset-env', 'GONE')
      assert.deepEqual(changed.env, { KEPT: '1', OLD: 'secret-5', NEW: '4=4' })
      assert.deepEqual(changed.said, [`${one} ${id} is changed:`, 'env +NEW -GONE ~OLD'])
      const set = await say(name, 'update', id, '--set', 'env.KEPT=6', '--unset-env', 'GONE', '--ports', '80/http')
      assert.deepEqual(set.env, { KEPT: '6', OLD: 'secret-5', NEW: '4=4' })
      assert.deepEqual(set.said, [
        `${one} ${id} is changed:`,
        'ports [] -> ["80/http"]',
        'env ~KEPT',
        'env GONE was not there',
      ])
      const file = join(temporaryFolder(), 'body.json')
      writeFileSync(file, '{"env":{"ALL":"7"}}')
      assert.deepEqual((await say(name, 'update', id, '--file', file, '--env', 'MORE=8')).env, { ALL: '7', MORE: '8' })
      assert.deepEqual((await say(name, 'update', id, '--set', 'env={"X":"9"}')).env, { X: '9' })
      assert.deepEqual((await say(name, 'update', id, '--env', 'X=9')).said, [`${one} ${id} is as it was`])
      const both = await runyard(name, 'update', id, '--env', 'X=1', '--unset-env', 'X')
      assert.deepEqual([both.code, both.stderr], [64, 'runyard: X is both set and removed; leave out one of them'])
      assert.equal((await runyard(name, 'delete', id)).code, 0)
    }
    const part = await runyard('accounts', 'update', 'own', '--set', 'limits.gpus=1')
    assert.deepEqual([part.code, part.stderr], [64, 'runyard: a single limit is changed with --limit gpus=1'])
  })

  test('a load-balancing endpoint is made by its type, and scales on requests', async () => {
    const flags = ['--image', 'ghcr.io/someone/server:1', '--cpu', '[{"id":"cpu3g","vcpuCount":2}]']
    const made = await shown('endpoints', 'create', '--type', 'LOAD_BALANCER', '--name', 'api', ...flags)
    assert.deepEqual(made.scaling, { type: 'REQUEST_COUNT', requestCount: 4 })
    assert.equal(made.requestUrls.base, `${server.url}/lb/${made.id}`)
    const named = await shown('endpoints', 'update', 'api', '--domain', 'Chat.example.org')
    assert.deepEqual([named.domain, named.browserUrl], ['chat.example.org', `http://chat.example.org:${server.port}`])
    const taken = await runyard(
      'endpoints',
      'create',
      '--type',
      'LOAD_BALANCER',
      '--name',
      'b',
      ...flags,
      '--domain',
      named.domain,
    )
    assert.match(
      taken.stderr,
      new RegExp(`^runyard: the domain chat\\.example\\.org is taken: endpoint ${made.id} has it`),
    )
    assert.equal((await shown('endpoints', 'update', 'api', '--domain', 'none')).domain, null)
    assert.deepEqual(await shown('endpoints', 'delete', made.id), { deleted: made.id })
  })

  test('accounts are made, shown and changed, each by itself or by the operator', async () => {
    const made = await shown('accounts', 'create', '--name', 'Ada')
    const changed = await shown('accounts', 'update', made.id, '--delete-running-endpoints', 'true')
    assert.deepEqual(changed, { ...made, deleteRunningEndpoints: true })
    assert.equal((await shown('accounts', 'get', 'own')).deleteRunningEndpoints, false)
    assert.match(
      (await runyard('accounts', 'list')).stdout,
      new RegExp(`^\\{"id":"${made.id}".*"deleteRunningEndpoints":true`, 'm'),
    )
    assert.equal((await runyard('accounts', 'update', 'own', '--delete-running-endpoints', 'perhaps')).code, 64)
  })

  test('an account sees what it has beside its limits', async () => {
    const { id } = await shown('accounts', 'create', '--name', 'Grace')
    await shown('accounts', 'update', id, '--limits', '{"queuedJobs":1,"storedMb":null}')
    const { key } = await shown('keys', 'create', '--name', 'k', '--account', id)
    const as = (...args: string[]) => runCommand([...args, '--json'], { RUNYARD_URL: server.url, RUNYARD_API_KEY: key })
    const { code, stdout, stderr } = await as('usage', '--limits')
    assert.equal(code, 0, stderr)
    const limits = new Map(rows(stdout).map(row => [row.name, row]))
    assert.deepEqual(limits.get('queuedJobs'), { name: 'queuedJobs', used: 0, limit: 1 })
    assert.deepEqual(limits.get('storedMb'), { name: 'storedMb', used: 0, limit: 'none' })
  })

  test('a server that lets running endpoints be deleted deletes them through GraphQL', async () => {
    const { id } = await shown('endpoints', 'create', '--name', 'runs', '--image', 'i', '--gpu', 'ADA_24', '--max', '2')
    assert.deepEqual(await graphql(server, `mutation { deleteEndpoint(id: "${id}") }`), { deleteEndpoint: null })
  })

  test('all mistakes of a request are reported, one line each, with an exit code for bad data', async () => {
    const { code, stderr } = await runyard('endpoints', 'create', '--name', 'x', '--set', 'bogus=1')
    assert.equal(code, 65)
    assert.deepEqual(stderr.split('\n').slice(1), [
      '  --set bogus=1: there is no such member',
      '  --image is required where there is no --template',
      '  exactly one of --gpu and --cpu is needed',
    ])
    assert.equal((await runyard('endpoints', 'create', '--max', 'many')).code, 64)
  })

  test('a key that is created works with what it may do, until it is disabled or revoked', async () => {
    const key = await shown('keys', 'create', '--name', 'reader', '--scope', '{"type":"read-only"}')
    const as = (...args: string[]) =>
      runCommand([...args, '--json'], { RUNYARD_URL: server.url, RUNYARD_API_KEY: key.key })
    assert.equal((await as('endpoints', 'list')).code, 0)
    const refused = await as('templates', 'create', '--name', 't', '--image', 'i')
    assert.deepEqual([refused.code, refused.stderr], [77, 'runyard: this API key has no write right for management'])
    await shown('keys', 'disable', key.id)
    assert.equal((await as('endpoints', 'list')).code, 77)
    await shown('keys', 'enable', key.id)
    assert.equal((await as('endpoints', 'list')).code, 0)
    await shown('keys', 'revoke', key.id)
    assert.equal((await as('endpoints', 'list')).code, 77)
    const { stdout } = await runyard('keys', 'list')
    assert.equal(stdout.includes(key.key), false)
  })

  test('the value of a secret is never shown', async () => {
    const file = join(temporaryFolder(), 'token')
    writeFileSync(file, 'hunter2')
    const secret = await shown('secrets', 'create', '--name', 'token', '--value', `@${file}`, '--description', 'd')
    const all = JSON.stringify([secret, (await runyard('secrets', 'list')).stdout])
    assert.equal(all.includes('hunter2'), false)
    assert.equal(secret.name, 'token')
  })

  test('a key for one endpoint and a short time is made in one line, and may do nothing else', async () => {
    const id = await everyday()
    const before = Date.now()
    const made = await shown('keys', 'create', '--jobs', 'node-everyday', '--expires', '15m')
    assert.deepEqual(made.scope, { type: 'restricted', management: 'none', jobs: { [id]: 'write' } })
    assert.equal(made.name, 'jobs of node-everyday')
    const lastsMs = Date.parse(made.expiresAt) - before
    assert.ok(lastsMs > 890_000 && lastsMs < 960_000, `${lastsMs} ms`)
    const as = (...args: string[]) => runCommand(args, { RUNYARD_URL: server.url, RUNYARD_API_KEY: made.key })
    assert.equal((await as('run', id, '--input', '{}')).code, 0)
    assert.equal((await as('endpoints', 'list')).code, 77)
    const wrong = await runyard('keys', 'create', '--jobs', 'node-everyday', '--expires', 'soon')
    assert.deepEqual([wrong.code, /--expires takes a time such as 15m/.test(wrong.stderr)], [64, true])
  })
})

describe('runyard run', () => {
  test('it waits for the job and prints it, and ends with 1 when it did not complete', async () => {
    const [endpoint] = (await runyard('endpoints', 'list')).stdout.trim().split('\n')
    const { id } = JSON.parse(endpoint!)
    const done = await runyard('run', id, '--input', '{"name":"Ada"}')
    assert.deepEqual([done.code, JSON.parse(done.stdout).status], [0, 'COMPLETED'])
    const bad = await runyard('run', id, '--input', '{"name"')
    assert.deepEqual([bad.code, bad.stderr.startsWith('runyard: --input is not JSON')], [65, true])
    assert.equal((await runyard('run', 'nothing', '--input', '{}')).code, 66)
    const detached = await runyard('run', id, '--input', '{}', '--detach')
    assert.equal(JSON.parse(detached.stdout).status, 'IN_QUEUE')
  })
})

/** The endpoint that the server was started with. */
async function everyday(): Promise<string> {
  const [endpoint] = (await runyard('endpoints', 'list')).stdout.trim().split('\n')
  return JSON.parse(endpoint!).id
}

const rows = (text: string) =>
  text.trim() === ''
    ? []
    : text
        .trim()
        .split('\n')
        .map(line => JSON.parse(line))

describe('commands for jobs and workers', () => {
  test('a job is submitted, listed, read, cancelled and deleted by its id alone', async () => {
    const endpoint = await everyday()
    const job = await shown('jobs', 'create', endpoint, '--input', '{"name":"Grace"}')
    await until(
      'the job to be done',
      async () => (await shown('jobs', 'get', job.id)).status === 'COMPLETED',
      20_000,
      50,
    )
    const list = await runyard('jobs', 'list', endpoint, '--status', 'completed', '--limit', '1')
    assert.deepEqual([list.code, rows(list.stdout).map(({ id, status }) => [id, status])], [0, [[job.id, 'COMPLETED']]])
    const late = await runyard('jobs', 'cancel', job.id)
    assert.deepEqual([late.code, late.stderr.includes('COMPLETED')], [65, true])
    assert.equal((await runyard('jobs', 'retry', job.id)).code, 65)
    assert.deepEqual(await shown('jobs', 'delete', job.id, '--endpoint', endpoint), { deleted: job.id })
    const gone = async () => (await runyard('jobs', 'get', job.id)).code === 66
    await until('the job to be gone', gone, 20_000, 200)
    const wrong = await runyard('jobs', 'list', endpoint, '--status', 'DONE', '--limit', '5')
    assert.deepEqual([wrong.code, wrong.stderr.includes('--status DONE is not known')], [65, true])
  })

  test('workers are listed, shown and ended', async () => {
    const endpoint = await everyday()
    await shown('endpoints', 'update', endpoint, '--min', '1')
    // One that an earlier test left behind may be about to end.
    await until(
      'other workers to end',
      async () => rows((await runyard('workers', 'list', endpoint)).stdout).length <= 1,
    )
    const worker = await until(
      'a worker',
      async () => rows((await runyard('workers', 'list', endpoint)).stdout).find(({ status }) => status === 'IDLE'),
      20_000,
      50,
    )
    const { uptimeSeconds, timeLine, ...same } = await shown('workers', 'get', worker.id)
    assert.deepEqual([same.phase, same.image, same.version], [worker.phase, worker.image, worker.version])
    assert.ok(uptimeSeconds >= worker.uptimeSeconds)
    const steps = timeLine.map((step: { phase: string }) => step.phase)
    assert.deepEqual(steps.slice(-2), ['initializing', 'ready'])
    const [watched] = rows((await runyard('top', endpoint, '--count', '1')).stdout)
    assert.deepEqual(
      watched.endpoints.map(({ id, workers }: { id: string; workers: unknown[] }) => [id, workers.length]),
      [[endpoint, 1]],
    )
    assert.deepEqual((await runyard('workers', 'get', endpoint)).code, 66)
    assert.deepEqual(await shown('workers', 'delete', worker.id), { deleted: worker.id })
    const left = async () => !(await runyard('workers', 'list')).stdout.includes(worker.id)
    await until('the worker to be gone', left, 20_000, 50)
    await shown('endpoints', 'update', endpoint, '--min', '0')
    const ended = rows((await runyard('workers', 'list', endpoint, '--ended')).stdout)
    assert.equal(ended.find(({ id }) => id === worker.id).status, 'EXITED')
    const { exit, stopReason } = await shown('workers', 'get', worker.id)
    assert.deepEqual([exit.code, stopReason], [0, 'requested'])
    const asked = await shown('whatif', endpoint, '--idle-timeout', '60', '--workers-max', '2', '--days', '1')
    assert.ok(asked.recorded.attempts >= 1)
    assert.deepEqual([asked.other.idleTimeout, asked.other.workersMax], [60, 2])
    const usage = rows((await runyard('usage', endpoint, '--bucket', 'hour', '--last', '2')).stdout)
    assert.ok(usage.reduce((sum, { usage: used }) => sum + used.jobs.completed, 0) >= 1)
    assert.equal(
      usage.every(({ serverlessId, totalAmount }) => serverlessId === endpoint && totalAmount === 0),
      true,
    )
  })

  test('a verb that makes no sense says why and ends with 2', async () => {
    for (const words of [
      ['workers', 'create', '--min', '3'],
      ['workers', 'update', 'x'],
      ['jobs', 'update', 'x', '--input', '{}'],
    ]) {
      const { code, stderr } = await runyard(...words)
      assert.deepEqual([code, stderr.startsWith('runyard: '), stderr.split('\n').length], [2, true, 1], stderr)
    }
  })
})

test('bash completes verbs, and the ids that the server has', async () => {
  const endpoint = await everyday()
  const script = `eval "$(runyard completion bash)"
    complete_() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _runyard; echo "\${COMPREPLY[@]}"; }
    complete_ runyard jobs ca
    complete_ runyard endpoints get ${endpoint.slice(0, 3)}
    complete_ runyard endpoints get ${endpoint} --js`
  const { PATH = '', HOME = '' } = process.env
  const env = { HOME, PATH: `${dirname(program)}:${PATH}`, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
  const [verbs, ids, options] = execFileSync('bash', ['-c', script], { env, encoding: 'utf8' }).split('\n')
  assert.deepEqual([verbs, ids, options], ['cancel', endpoint, '--json'])
})

test('each list says the id of a thing first, since completion reads it there', async () => {
  await shown('templates', 'create', '--name', 'shared', '--image', 'i')
  for (const name of ['endpoints', 'templates', 'secrets', 'keys']) {
    const { stdout } = await runyard(name, 'list')
    assert.match(stdout, /^\{"id":"/, name)
  }
})

test('the completion script knows commands, their verbs and their options', async () => {
  const { stdout } = await runyard('completion', 'bash')
  for (const word of ['endpoints', 'create', '--follow', 'completion']) assert.ok(stdout.includes(word), word)
})

test('a command whose reader has enough ends without a word', () => {
  const command = `(RUNYARD_URL=${server.url} RUNYARD_API_KEY=${server.apiKey} '${program}' endpoints list; echo "code $?" >&2) 2>&1 >&3 | cat`
  const said = execFileSync('bash', ['-c', `{ ${command}; } 3> >(true)`], { encoding: 'utf8' })
  assert.equal(said, 'code 0\n')
})

test('a command that changes something comes to its end and its exit code without a reader, on both streams', async () => {
  const endpoint = await everyday()
  const { id: template } = await shown('templates', 'create', '--name', 'unread', '--image', 'i')
  const requests = join(temporaryFolder(), 'requests.jsonl')
  writeFileSync(requests, '{"input":{"name":"unread"}}\n')
  const script = [
    `run ${endpoint} --input '{"name":"unread"}'`,
    `run ${endpoint} --input '{"fail":true}'`,
    `batches create ${endpoint} --requests ${requests} --name unread`,
    `templates delete ${template}`,
    `templates delete ${template}`,
  ].map(words => `'${program}' ${words} 2>&1 | true; printf '%s ' "\${PIPESTATUS[0]}"`)
  const env = { PATH: process.env.PATH, RUNYARD_URL: server.url, RUNYARD_API_KEY: server.apiKey }
  const codes = execFileSync('bash', ['-c', script.join('\n')], {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  assert.equal(codes, '0 1 0 0 66 ')
  const ends = rows((await runyard('jobs', 'list', endpoint, '--limit', '3')).stdout).map(({ status }) => status)
  assert.deepEqual([ends.includes('FAILED'), ends.includes('COMPLETED')], [true, true])
  const batches = rows((await runyard('batches', 'list', endpoint)).stdout)
  assert.deepEqual(
    batches.map(({ name }) => name).filter(name => name === 'unread'),
    ['unread'],
  )
})

/**
 * JSON that JSON.parse and JSON.stringify would change: odd numbers, their spelling, names that look like numbers,
 * `__proto__`, a name twice.
 */
const ODD =
  '{"n":18446744073709551615,"f":1.0,"e":1e400,"z":-0,"10":1,"9":2,"__proto__":{"x":1E5},"9":3,"s":"\\u00e9\\/ : [1, 2]"}'

/** A server whose answers have {@link ODD}, and that notes what it is sent. */
async function oddServer(): Promise<{ env: Record<string, string>; sent: Map<string, string> }> {
  const job = `{"id":"j-u1","status":"COMPLETED","delayTime":1,"executionTime":2,"input":${ODD},"output": ${ODD} ,"error":null,"notes":[]}`
  const answers: readonly (readonly [RegExp, string])[] = [
    [/\/status-sync\//, job],
    [/\/stream\//, `data: {"output": ${ODD}}\n\nevent: status\ndata: {"status":"COMPLETED"}\n\n`],
    [/\/ops\/locate\//, '{"kind":"job","endpointId":"e1"}'],
    [/\/requests\/j-u1/, job],
    [/\/batch\/.*requests\?/, `{"requests":[ ${job} ],"hasMore":false}`],
    [/\/batch/, `{"id":"b1","counts":${ODD}}`],
    [/\/requests\?/, `{"requests":[ ${job} ,${job}],"pagination":{"nextCursor":null}}`],
    [/\/run$/, `{"id":"j-u1","status":"IN_QUEUE","more":${ODD}}`],
    [/./, `{"id":"e1","name":"one","env":${ODD}}`],
  ]
  const sent = new Map<string, string>()
  const played = createServer(async (request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    sent.set(`${request.method} ${path}`, await text(request))
    const isStream = /\/stream\//.test(path)
    response.setHeader('content-type', isStream ? 'text/event-stream' : 'application/json')
    response.setHeader('x-request-id', 'played')
    response.end(answers.find(([pattern]) => pattern.test(request.url ?? ''))?.[1])
  })
  await new Promise<void>(resolve => played.listen(0, '127.0.0.1', resolve))
  atEnd(() => void played.close())
  const { port } = played.address() as AddressInfo
  return { env: { RUNYARD_URL: `http://127.0.0.1:${port}`, RUNYARD_API_KEY: 'key' }, sent }
}

describe('JSON goes through commands as it is', () => {
  test('into the server: inputs, lines of batches, tests, bodies and what is set in them', async () => {
    const { env, sent } = await oddServer()
    const folder = temporaryFolder()
    const file = (name: string, content: string) => {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    const put = async (path: string, body: string, ...args: string[]) => {
      sent.clear()
      const { code, stderr } = await runCommand(args, env)
      assert.deepEqual([code, sent.get(path)], [0, body], stderr)
    }
    const input = file('input.json', `\uFEFF ${ODD}\n`)
    await put('POST /v2/e1/run', `{"input":${ODD}}`, 'run', 'e1', '--input', ODD)
    await put(
      'POST /v2/e1/run',
      `{"input": ${ODD}\n,"policy":{"executionTimeout":6000}}`,
      ...['jobs', 'create', 'e1'],
      '--input',
      `@${input}`,
      '--timeout',
      '6000',
    )
    await put(
      'POST /v2/e1/requests/j-u1/replay',
      `{"input":${ODD}}`,
      'jobs',
      'replay',
      'j-u1',
      '--endpoint',
      'e1',
      '--input',
      ODD,
    )
    const lines = file('lines.jsonl', `{"input": ${ODD}}\r\n\n{"input":1.0,"policy":${ODD}}\n`)
    await put(
      'POST /v2/e1/batch',
      `[{"input": ${ODD}},{"input":1.0,"policy":${ODD}}]`,
      'batches',
      'create',
      'e1',
      '--requests',
      lines,
    )
    await put(
      'POST /v2/e1/batch/b1/requests',
      `{"requests":[{"input": ${ODD}},{"input":1.0,"policy":${ODD}}]}`,
      'batches',
      'add',
      'e1',
      'b1',
      '--requests',
      lines,
    )
    file('.runpod/tests.json', `{"tests":[{"name":"one","input": ${ODD} }]}`)
    await put('POST /v2/e1/run', `{"input":${ODD}}`, 'test', folder, '--endpoint', 'e1')
    const body = file('body.json', `{"name": "x", "workers":{"min":1e400,"max":1}, "scaling": ${ODD}}`)
    await put(
      'PATCH /v2/templates/t1',
      `{"name":"x","workers":{"min":1e400,"max":2.0},"scaling":${ODD},"disk":18446744073709551615}`,
      ...['templates', 'update', 't1', '--file', body, '--set', 'workers.max=2.0', '--disk', '18446744073709551615'],
    )
  })

  test('out of it: jobs, their lists, streams, batches and resources, on a line and with line ends', async () => {
    const { env } = await oddServer()
    const shows = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand(args, env)
      assert.equal(code, 0, stderr)
      return stdout
    }
    const pretty = indentedJson(ODD)
    const has = (said: string, times = 1) => assert.equal(said.split(ODD).length - 1, times, said)
    assert.equal(await shows('run', 'e1', '--input', '{}'), `${pretty}\n`)
    has(await shows('run', 'e1', '--input', '{}', '--json'), 2)
    has(await shows('run', 'e1', '--input', '{}', '--detach', '--json'))
    assert.equal(await shows('run', 'e1', '--input', '{}', '--stream'), `${ODD}\n\n`)
    assert.match(
      await shows('run', 'e1', '--input', '{}', '--stream', '--json'),
      /^\{"chunk":\{"n":18446744073709551615,"f":1\.0,/,
    )
    has(await shows('jobs', 'get', 'j-u1'), 2)
    has(await shows('jobs', 'get', 'j-u1', '--json'), 2)
    has(await shows('jobs', 'create', 'e1', '--input', '{}', '--json'))
    has(await shows('jobs', 'list', 'e1', '--json'), 4)
    has(await shows('batches', 'requests', 'e1', 'b1'), 2)
    has(await shows('batches', 'get', 'e1', 'b1', '--json'))
    has(await shows('endpoints', 'get', 'e1', '--json'))
    assert.ok((await shows('endpoints', 'get', 'e1')).includes(`"env": ${pretty.replaceAll('\n', '\n  ')}`))
  })

  test('and what is no text is refused, not changed', async () => {
    const { env, sent } = await oddServer()
    const latin = join(temporaryFolder(), 'latin1.json')
    writeFileSync(latin, Buffer.from('{"input":"\xe9"}', 'latin1'))
    for (const args of [
      ['run', 'e1', '--input', `@${latin}`],
      ['batches', 'create', 'e1', '--requests', latin],
    ]) {
      const { code, stderr } = await runCommand(args, env)
      assert.deepEqual([code, stderr], [65, `runyard: ${latin} is not UTF-8`])
    }
    assert.equal(sent.size, 0)
  })
})
