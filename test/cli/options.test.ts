/** Options in words, and messages that name the option that was typed. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Command } from 'commander'
import { flagsByField } from '../../src/cli/client/option-fields.ts'
import { EXIT } from '../../src/cli/exit.ts'
import { commandLine } from '../../src/cli/program.ts'
import { commandsOn } from '../support/command-line.ts'
import { openRig } from '../support/rig.ts'

/** The command line on a new rig. */
async function open(t: TestContext) {
  const rig = await openRig(t)
  const runyard = commandsOn(rig)
  const shown = async (...words: readonly string[]) => {
    const { code, stdout, stderr } = await runyard(...words, '--json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }
  return { rig, runyard, shown }
}

const ENDPOINT = ['endpoints', 'create', '--name', 'e', '--image', 'i']

describe('options in words', () => {
  test('vCPUs are a number, or a flavor and a number', async t => {
    const { shown } = await open(t)
    const cpus = async (...words: readonly string[]) => {
      const { cpu } = await shown(...words)
      return cpu.map(({ id, vcpuCount }: { id: string; vcpuCount: number }) => `${id} ${vcpuCount}`)
    }
    assert.deepEqual(await cpus(...ENDPOINT, '--cpu', '4'), ['cpu3g 4'])
    assert.deepEqual(await cpus(...ENDPOINT, '--cpu', 'cpu3c:2,cpu5c:8'), ['cpu3c 2', 'cpu5c 8'])
    assert.deepEqual(await cpus(...ENDPOINT, '--cpu', '[{"id":"cpu3g","vcpuCount":2}]'), ['cpu3g 2'])
    assert.deepEqual(await cpus('endpoints', 'create', '--name', 'f', '--image', 'i', '--gpu', 'none', '--cpu', '8'), [
      'cpu3g 8',
    ])
    assert.deepEqual(await cpus('endpoints', 'update', 'f', '--cpu', '2'), ['cpu3g 2'])
  })

  test('a share of a GPU is for endpoints with one, and comes with it', async t => {
    const { runyard, shown } = await open(t)
    for (const words of [
      ['--gpu', 'none'],
      ['--cpu', '2'],
    ] as const) {
      const { code, stderr } = await runyard(...ENDPOINT, ...words, '--gpu-memory', 'auto')
      assert.equal(code, EXIT.usage, stderr)
      assert.match(stderr, new RegExp(`--gpu-memory is a share of a GPU, and ${words[0]}.* gives its workers none`))
    }
    await shown(...ENDPOINT, '--cpu', '2')
    const { gpu } = await shown('endpoints', 'update', 'e', '--gpu', 'ADA_24', '--gpu-memory', '8')
    assert.equal(gpu.memoryGb, 8)
    await shown('endpoints', 'update', 'e', '--gpu', 'none')
    const learned = await shown('endpoints', 'update', 'e', '--gpu', 'ADA_24', '--gpu-memory', 'auto')
    assert.equal(learned.gpu.memoryGb, 'auto')
    assert.equal((await runyard('endpoints', 'update', 'e', '--gpu', 'none', '--gpu-memory', '4')).code, EXIT.usage)
  })

  test('a scaler is its type and its value', async t => {
    const { shown } = await open(t)
    const made = await shown(...ENDPOINT, '--cpu', '2', '--scaler', 'QUEUE_DELAY:0.5')
    assert.deepEqual(made.scaling, { type: 'QUEUE_DELAY', queueDelay: 0.5 })
    const changed = await shown('endpoints', 'update', 'e', '--scaler', 'request_count:3')
    assert.deepEqual(changed.scaling, { type: 'REQUEST_COUNT', requestCount: 3 })
    const json = await shown('endpoints', 'update', 'e', '--scaling', '{"type":"QUEUE_DELAY","queueDelay":4}')
    assert.deepEqual(json.scaling, { type: 'QUEUE_DELAY', queueDelay: 4 })
  })

  test('times are numbers, or numbers with a unit', async t => {
    const { rig, shown } = await open(t)
    const made = await shown(...ENDPOINT, '--cpu', '2', '--timeout', '10m', '--idle-timeout', '5m')
    assert.deepEqual([made.timeout, made.workers.idleTimeout], [600_000, 300])
    const { id } = await shown('jobs', 'create', 'e', '--input', '{}', '--timeout', '90s')
    assert.equal((await rig.job(made.id, id)).executionTimeoutMs, 90_000)
  })

  test('models are named one by one', async t => {
    const { shown } = await open(t)
    const made = await shown(...ENDPOINT, '--cpu', '2', '--model', 'owner/one', '--model', 'owner/two:main')
    assert.deepEqual(made.modelReferences.length, 2)
    assert.deepEqual((await shown('endpoints', 'update', 'e', '--model', 'none')).modelReferences, [])
  })

  test('rights of a key are words', async t => {
    const { shown } = await open(t)
    const scope = async (words: string) => (await shown('keys', 'create', '--name', 'k', '--scope', words)).scope
    assert.deepEqual(await scope('read-only'), { type: 'read-only' })
    assert.deepEqual(await scope('all'), { type: 'all' })
    const some = { type: 'restricted', management: 'read', jobs: 'none' }
    assert.deepEqual(await scope('management=read'), some)
    assert.deepEqual(await scope('jobs=write, management=read'), { ...some, jobs: 'write' })
    const { id } = await shown('keys', 'create', '--name', 'changed')
    assert.deepEqual((await shown('keys', 'update', id, '--scope', 'read-only')).scope, { type: 'read-only' })
  })

  test('one limit of an account is changed, and the others stay', async t => {
    const { shown } = await open(t)
    await shown('accounts', 'create', '--name', 'team')
    const limits = async (...words: string[]) => (await shown('accounts', 'update', 'team', ...words)).limits
    assert.deepEqual(await limits('--limit', 'gpus=2', '--limit', 'queuedJobs=none'), { gpus: 2, queuedJobs: null })
    assert.deepEqual(await limits('--limit', 'workers=3'), { gpus: 2, queuedJobs: null, workers: 3 })
    assert.deepEqual(await limits('--limit', 'queuedJobs=default'), { gpus: 2, workers: 3 })
    assert.deepEqual(await limits('--limits', '{"objects":5}'), { objects: 5 })
    assert.equal(
      (await shown('accounts', 'update', 'own', '--delete-running-endpoints', 'yes')).deleteRunningEndpoints,
      true,
    )
  })
})

/** Commands with a bad value, the option that the message names, and the allowed values in it. */
const BAD: readonly (readonly [command: string, words: readonly string[], option: string, says: RegExp])[] = [
  ...['endpoints create', 'endpoints update e', 'templates create', 'templates update t'].flatMap(command => {
    const rows: [string, string[], string, RegExp][] = [
      [command, ['--name', ''], '--name', /must not be empty/],
      [command, ['--image', ''], '--image', /must not be empty/],
      [command, ['--disk', '0'], '--disk 0', /must be at least 1/],
      [command, ['--disk', 'big'], '--disk', /takes a number, not 'big'/],
      [command, ['--env', 'A B=1'], '--env', /'A B' is not a variable name/],
      [command, ['--env', 'A'], '--env', /takes NAME=value, not 'A'/],
      [command, ['--ports', '1/foo'], '--ports 1/foo', /port\/protocol/],
      [command, ['--registry', 'nosuch'], '--registry', /nosuch/],
    ]
    if (command.includes('update')) rows.push([command, ['--unset-env', 'A=1'], '--unset-env', /takes a NAME/])
    return rows
  }),
  ...['endpoints create', 'endpoints update e'].flatMap(command => {
    const rows: [string, string[], string, RegExp][] = [
      [command, ['--gpu', 'nosuch'], '--gpu', /nosuch/],
      [command, ['--gpu-count', '99'], '--gpu-count 99', /must be at most 64/],
      [command, ['--gpu-memory', '9999'], '--gpu-memory 9999', /must be at most 1024/],
      [command, ['--priority', 'urgent'], '--priority urgent', /low.*normal.*high/],
      [command, ['--preemptible', 'maybe'], '--preemptible', /takes true or false/],
      [command, ['--cpu', '3'], '--cpu', /takes 2, 4, 8, 16 or 32 vCPUs.*not '3'/],
      [command, ['--cpu', 'foo:4'], '--cpu foo:4', /cpu3c, cpu3g/],
      [command, ['--volume', 'nosuch'], '--volume', /nosuch/],
      [command, ['--model', 'nosuch'], '--model', /owner\/name/],
      [command, ['--min', '-1'], '--min -1', /must be at least 0/],
      [command, ['--max', '1001'], '--max 1001', /must be at most 1000/],
      [command, ['--min', '1.5'], '--min 1.5', /must be a whole number/],
      [command, ['--idle-timeout', '2h'], '--idle-timeout 2h', /must be at most 3600/],
      [command, ['--idle-timeout', 'long'], '--idle-timeout', /takes a number, or a time such as 30s/],
      [command, ['--timeout', '1'], '--timeout 1', /must be at least 5000/],
      [command, ['--scaler', 'REQUEST_COUNT:0'], '--scaler REQUEST_COUNT:0', /must be at least 1/],
      [command, ['--scaler', 'SOON:4'], '--scaler', /takes QUEUE_DELAY:<seconds> or REQUEST_COUNT:<number>/],
      [command, ['--scaling', '{"type":"X"}'], '--scaling {"type":"X"}', /must be QUEUE_DELAY or REQUEST_COUNT/],
      [command, ['--flashboot', 'fast'], '--flashboot fast', /must be OFF, FLASHBOOT or PRIORITY_FLASHBOOT/],
      [command, ['--cors-origins', 'x'], '--cors-origins x', /origin/],
      [command, ['--domain', 'a'.repeat(301)], '--domain', /at most 300 characters/],
      [command, ['--template', 'nosuch'], '--template', /nosuch/],
      [command, ['--set', 'workers.max=many'], '--set workers.max=many', /must be a number, not a string/],
      [command, ['--set', 'bogus=1'], '--set bogus=1', /no such member/],
    ]
    return rows
  }),
  [
    'endpoints update e',
    ['--domain', 'chat.example.org'],
    '--domain chat.example.org',
    /is for load-balancing endpoints/,
  ],
  ['endpoints create', ['--type', 'STACK'], '--type STACK', /must be QUEUE or LOAD_BALANCER/],
  ['endpoints update e', ['--canary', '100'], '--canary 100', /must be at most/],
  ['templates create', ['--serverless', '--name', ''], '--name', /must not be empty/],
  ['secrets create', ['--name', 'a b', '--value', '@/dev/null'], '--name a b', /must begin with a letter/],
  ['secrets create', ['--name', 'a', '--value', 'hunter2'], '--value', /takes @<file>, or - for standard input/],
  ['secrets update s', ['--value', 'hunter2'], '--value', /takes @<file>/],
  ['secrets update s', ['--description', 'd'.repeat(65_536)], '--description', /at most 65535 characters/],
  ['registries create', ['--username', '', '--password', '@/dev/null'], '--username', /must not be empty/],
  ['registries create', ['--name', '', '--password', '@/dev/null'], '--name', /must not be empty/],
  ['registries create', ['--username', 'u', '--password', 'hunter2'], '--password', /takes @<file>/],
  ...['keys create', 'keys update k'].flatMap(command => {
    const rows: [string, string[], string, RegExp][] = [
      [command, ['--name', ''], '--name', /must not be empty/],
      [command, ['--scope', 'some'], '--scope', /takes all, read-only, or areas/],
      [command, ['--scope', '{"type":"some"}'], '--scope {"type":"some"}', /must be all, read-only or restricted/],
      [command, ['--expires-at', 'soon'], '--expires-at soon', /must be a date and time such as/],
      ...['--requests-per-minute', '--tokens-per-minute', '--tokens-per-day'].map((option): (typeof rows)[number] => [
        command,
        [option, 'x'],
        option,
        /takes a number/,
      ]),
      [command, ['--accounting', 'perhaps'], '--accounting', /takes true or false/],
    ]
    return rows
  }),
  ['keys create', ['--jobs', 'nosuch'], '--jobs', /nosuch/],
  ['keys create', ['--models', ' , '], '--models', /takes names of models/],
  ['keys create', ['--models', 'a', '--scope', 'all'], '--models, --jobs and --scope', /give one/],
  ['keys create', ['--account', 'nosuch'], '--account', /nosuch/],
  ['keys create', ['--expires', 'soon'], '--expires', /takes a time such as 15m/],
  ['accounts create', ['--name', ''], '--name', /must not be empty/],
  ['accounts update own', ['--name', ''], '--name', /must not be empty/],
  ['accounts update own', ['--limit', 'gpu=1'], '--limit gpu=1', /did you mean gpus/],
  ['accounts update own', ['--limit', 'gpus=-1'], '--limit', /takes a whole number, none or default/],
  ['accounts update own', ['--limits', '{"gpus":-1}'], '--limits {"gpus":-1}', /must be at least 0/],
  [
    'accounts update own',
    ['--delete-running-endpoints', 'perhaps'],
    '--delete-running-endpoints',
    /takes true or false/,
  ],
  ['volumes create', ['--name', ''], '--name', /must not be empty/],
  ['volumes create', ['--size', '1'], '--size 1', /must be at least 10/],
  ['volumes create', ['--name', 'w', '--size', '10', '--data-center', 'X'], '--data-center X', /the data centers are/],
  ['volumes update v', ['--size', '5000'], '--size 5000', /must be at most 4096/],
  ['volumes update v', ['--name', ''], '--name', /must not be empty/],
  ['global-volumes create', ['--name', ''], '--name', /must not be empty/],
  ['global-volumes create', ['--size', '1'], '--size 1', /must be at least 10/],
  ['global-volumes update v', ['--size', '5000'], '--size 5000', /must be at most 4096/],
  ['global-volumes update v', ['--name', ''], '--name', /must not be empty/],
  ...['run e', 'jobs create e', 'jobs replay JOB'].flatMap(command => {
    const rows: [string, string[], string, RegExp][] = [
      [command, ['--input', '{}', '--timeout', '1'], '--timeout 1', /from 5000 to 604800000/],
      [command, ['--input', '{}', '--timeout', 'soon'], '--timeout', /whole milliseconds, or a time such as 90s/],
      [command, ['--input', '{}', '--webhook', 'x'], '--webhook x', /must be an http or https URL/],
      [command, ['--input', '{'], '--input', /is not JSON/],
      [command, ['--input', '3'], '--input', /JSON object/],
    ]
    return rows
  }),
  ...['jobs list e', 'jobs cancel e', 'jobs retry e'].flatMap(command => {
    const rows: [string, string[], string, RegExp][] = [
      [command, ['--status', 'DONE'], '--status DONE', /the states are/],
      [command, ['--since', 'soon'], '--since', /takes a time ago such as 10m/],
      [command, ['--until', 'soon'], '--until', /takes a time ago such as 10m/],
    ]
    return rows
  }),
  ['usage', ['--last', 'few'], '--last few', /must be a number/],
  ['usage', ['--from', 'soon'], '--from soon', /date/],
  ['usage', ['--to', 'soon'], '--to soon', /date/],
  ['usage', ['--bucket', 'era'], '--bucket', /hour, day/],
  ['whatif e', ['--idle-timeout', '0'], '--idle-timeout 0', /must be at least 1/],
  ['whatif e', ['--workers-min', '-1'], '--workers-min -1', /must be at least 0/],
  ['whatif e', ['--workers-max', '1001'], '--workers-max 1001', /must be at most 1000/],
  ['whatif e', ['--scaler-type', 'X'], '--scaler-type', /QUEUE_DELAY, REQUEST_COUNT/],
  ['whatif e', ['--scaler-value', '-1'], '--scaler-value -1', /must be at least/],
  ['whatif e', ['--flashboot', 'X'], '--flashboot', /OFF/],
  ['whatif e', ['--start-aware', 'X'], '--start-aware', /yes, no/],
  ['whatif e', ['--days', '0'], '--days 0', /must be at least 1/],
  ['audit', ['--last', '0'], '--last', /takes a number from 1/],
  ['audit', ['--since', 'soon'], '--since', /takes a time ago/],
  ['audit', ['--until', 'soon'], '--until', /takes a time ago/],
  ['audit', ['--surface', 'X'], '--surface X', /rest/],
  ['logs e', ['--tail', 'few'], '--tail', /whole number/],
  ['logs e', ['--since', 'soon'], '--since', /takes a time ago/],
  ['logs e', ['--source', 'X'], '--source', /container, system/],
  ['batches create e', ['--name', 'n'.repeat(2_000), '--requests', '@'], '--name', /characters/],
  ['deploy vllm', ['--gpu', 'none', '--name', ''], '--name', /must not be empty/],
  ['deploy vllm', ['--gpu', 'none', '--image', ''], '--image', /must not be empty/],
  ['deploy vllm', ['--gpu', 'none', '--max', '1001'], '--max 1001', /must be at most 1000/],
  ['deploy vllm', ['--gpu', 'none', '--min', 'x'], '--min', /takes a whole number/],
  ['deploy vllm', ['--gpu', 'none', '--set', 'A B=1'], '--set', /'A B' is not a variable name/],
  ['deploy vllm', ['--gpu', 'nosuch'], '--gpu', /nosuch/],
  ['deploy vllm', ['--gpu', 'none', '--gpu-count', 'x'], '--gpu-count', /takes a whole number/],
  ['deploy vllm', ['--gpu', 'none', '--gpu-memory', 'x'], '--gpu-memory', /takes a number of GB or auto/],
  ['deploy vllm', ['--gpu', 'none', '--registry', 'nosuch'], '--registry', /nosuch/],
]

/** Options that accept any text, or that take no value. */
const ANY = [
  ...['--serverless', '--exempt', '--low-priority', '--description', '--args'],
  ...['--worker', '--error', '--fingerprint', '--grep', '--account', '--key', '--operation', '--object'],
]

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap(all)]
}

function commandWords(command: Command): string {
  return command.parent === null ? '' : `${commandWords(command.parent)} ${command.name()}`.trim()
}

describe('a bad value', () => {
  test('is named with the option that was typed, and with what is allowed', async t => {
    const { runyard, shown } = await open(t)
    await shown(...ENDPOINT, '--cpu', '2')
    await shown('templates', 'create', '--name', 't', '--image', 'i')
    await shown('volumes', 'create', '--name', 'v', '--size', '10', '--data-center', 'EU-RO-1')
    await shown('global-volumes', 'create', '--name', 'v')
    await shown('keys', 'create', '--name', 'k')
    const folder = mkdtempSync(join(tmpdir(), 'options-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const requests = join(folder, 'requests.jsonl')
    writeFileSync(requests, '{"input":{}}\n')
    writeFileSync(join(folder, 'value'), 'v')
    await shown('secrets', 'create', '--name', 's', '--value', `@${join(folder, 'value')}`)
    const { id: job } = await shown('jobs', 'create', 'e', '--input', '{}')
    const wrong: string[] = []
    for (const [command, words, option, says] of BAD) {
      const typed = [...command.replace('JOB', job).split(' '), ...words.map(word => (word === '@' ? requests : word))]
      const { code, stdout, stderr } = await runyard(...typed)
      const lines = stderr
        .trim()
        .split('\n')
        .map(line => line.trim().replace(/^runyard: (?:option ')?/, ''))
      const line = lines.find(one => one.replace(/^-\w, /, '').startsWith(option) && says.test(one))
      const isPlain = !/\$\.|query\.|"[a-z]+\.[a-zA-Z]+"|hunter2/.test(stderr)
      if (line === undefined || !isPlain || code === 0 || stdout !== '')
        wrong.push(`${typed.join(' ').slice(0, 200)} (${code}): ${stderr.slice(0, 500)}`)
    }
    assert.deepEqual(wrong, [])
  })

  test('is tried for each option that becomes a field of a request', () => {
    const tried = new Set(
      BAD.map(([command, , option]) => `${command.split(' ').slice(0, 2).join(' ')} ${option.split(' ')[0]}`),
    )
    const isTried = (command: string, flag: string) =>
      tried.has(`${command} ${flag}`) ||
      [...tried].some(one => one.startsWith(`${command} `) && one.endsWith(` ${flag}`))
    const missing = all(commandLine()).flatMap(command =>
      [...new Set(flagsByField(command).values())]
        .filter(flag => !ANY.includes(flag) && !isTried(commandWords(command), flag))
        .map(flag => `${commandWords(command)} ${flag}`),
    )
    assert.deepEqual(missing, [])
  })

  test('in a file is named with its place there, and a required option by its name', async t => {
    const { runyard } = await open(t)
    const folder = mkdtempSync(join(tmpdir(), 'options-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'body.json')
    writeFileSync(file, '{"image":"i","timeout":1,"cpu":[{"id":"cpu3g","vcpuCount":2}]}')
    const { code, stderr } = await runyard('endpoints', 'create', '--file', file)
    assert.deepEqual(
      [code, stderr.trimEnd().split('\n')],
      [65, ['runyard: the request is refused:', '  --name is required', `  timeout in ${file} must be at least 5000`]],
    )
    assert.equal((await runyard('accounts', 'create')).stderr, 'runyard: --name is required\n')
    assert.equal(
      (await runyard('volumes', 'create', '--name', 'data', '--size', '20')).stderr,
      'runyard: --data-center is required, such as EU-RO-1; runyard catalog datacenters lists them\n',
    )
    const both = (await runyard(...ENDPOINT)).stderr
    assert.equal(both, 'runyard: exactly one of --gpu and --cpu is needed\n')
  })
})

test('a job that waits names the command that shows its output, and its empty logs the one that says why', async t => {
  const { runyard, shown } = await open(t)
  await shown(...ENDPOINT, '--cpu', '2')
  const { stdout } = await runyard('jobs', 'create', 'e', '--input', '{}')
  const [, id = '', named = ''] = /^job (\S+) is IN_QUEUE; runyard jobs get (\S+) shows its output/.exec(stdout) ?? []
  assert.equal(named, id, stdout)
  const logs = await runyard('logs', id)
  assert.deepEqual(
    [logs.code, logs.stdout, logs.stderr],
    [0, '', `runyard: there is no output yet; runyard why ${id} says more\n`],
  )
  const filtered = await runyard('logs', id, '--grep', 'x')
  assert.equal(filtered.stderr, 'runyard: no line matches\n')
  assert.equal((await runyard('logs', id, '--json')).stderr, '')
})
