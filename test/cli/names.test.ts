/** Names wherever a command takes an id. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Command } from 'commander'
import type { KindName } from '../../src/cli/client/kinds.ts'
import { commandLine } from '../../src/cli/program.ts'
import type { OwnerId } from '../../src/core/ids.ts'
import { createApp } from '../support/apps.ts'
import { commandsOn, type RunsCommands } from '../support/command-line.ts'
import { openRig, type Rig } from '../support/rig.ts'

/** Bodies of new things of each kind, and their paths. */
const KINDS: Readonly<Record<KindName, readonly [path: string, body: object]>> = {
  endpoints: [
    '/v2/serverless',
    {
      type: 'QUEUE',
      image: 'i',
      cpu: [{ id: 'cpu3g', vcpuCount: 2 }],
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    },
  ],
  templates: ['/v2/templates', { image: 'i' }],
  secrets: ['/v2/account/secrets', { value: 'v' }],
  keys: ['/v2/account/keys', {}],
  accounts: ['/v2/account/accounts', {}],
  volumes: ['/v2/network-volumes', { size: 10, dataCenter: 'EU-RO-1' }],
  'global-volumes': ['/v2/global-volumes', {}],
  registries: ['/v2/registries', { username: 'u', password: 'p' }],
  alerts: ['/v2/account/alert-receivers', { kind: 'webhook', address: 'https://hooks.example' }],
}

/** Makes a thing and returns its id. */
async function make(rig: Rig, kind: KindName | 'apps', name: string): Promise<string> {
  if (kind === 'apps') return createApp(rig, name)
  const [path, body] = KINDS[kind]
  const { status, json, text } = await rig.ask('POST', path, { body: { ...body, name } })
  assert.equal(status, 201, text)
  return json.id
}

/** Words that a command needs behind its first argument, by its words. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  run: ['--input', '{}', '--detach'],
  'jobs create': ['--input', '{}'],
  'jobs purge': ['--yes'],
  'jobs cancel': ['--status', 'IN_QUEUE', '--dry-run'],
  'jobs retry': ['--failed', '--dry-run'],
  'secrets update': ['--description', 'd'],
  'endpoints update': ['--max', '1'],
  'templates update': ['--disk', '2'],
  'keys update': ['--name', 'renamed'],
  'accounts update': ['--limit', 'gpus=1'],
  'volumes update': ['--size', '11'],
  'global-volumes update': ['--name', 'renamed'],
  'endpoints releases': ['1'],
  usage: ['--times', '--bucket', 'hour'],
}

/** Arguments that are a thing with an id and a name. */
const THINGS = ['id', 'endpoint', 'job or endpoint']

/** Arguments that have no name beside their id, such as a job, or no id beside their name, such as a file. */
const NAMELESS = ['job', 'worker', 'model', 'name', 'name=endpoints', 'folder', 'file', 'shell', 'command', 'anything']

/** Commands that cannot succeed in the rig, or that do not end: only a mistyped name is tried. */
const ENDLESS = ['events', 'endpoints rollback', 'endpoints promote']

function commandWords(command: Command): string {
  return command.parent === null ? '' : `${commandWords(command.parent)} ${command.name()}`.trim()
}

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap(all)]
}

/** The name of the first argument of each command that has one. */
const ARGUMENTS = all(commandLine())
  .filter(command => command.registeredArguments.length > 0)
  .map(command => ({ words: commandWords(command), argument: command.registeredArguments[0]!.name() }))

/** The commands that take a thing by its id as their first argument. */
const TAKING = ARGUMENTS.filter(({ argument }) => THINGS.includes(argument)).map(({ words }) => words)

async function open(t: TestContext): Promise<{ rig: Rig; runyard: RunsCommands }> {
  const rig = await openRig(t)
  return { rig, runyard: commandsOn(rig) }
}

function argumentKind(words: string): KindName | 'apps' {
  const group = words.split(' ')[0]!
  if (group === 'apps') return group
  return Object.hasOwn(KINDS, group) ? (group as KindName) : 'endpoints'
}

test('each command that takes an id takes a name, and says what there is to one that nothing has', async t => {
  const { rig, runyard } = await open(t)
  assert.ok(TAKING.length > 40, TAKING.join(', '))
  const others = ARGUMENTS.filter(({ argument }) => ![...THINGS, ...NAMELESS].includes(argument))
  assert.deepEqual(others, [])
  const requests = join(mkdtempSync(join(tmpdir(), 'names-')), 'requests.jsonl')
  t.after(() => rmSync(dirname(requests), { recursive: true }))
  writeFileSync(requests, '{"input":{}}\n')
  for (const [index, words] of TAKING.entries()) {
    const name = `${words.replaceAll(' ', '-')}-${index}`
    const id = await make(rig, argumentKind(words), name)
    const path = [...words.split(' ')]
    const isOfBatch = /^batches (?!list|create)/.test(words)
    const file = ['batches add', 'batches create'].includes(words) ? ['--requests', requests] : []
    const more = [...(isOfBatch ? ['night'] : (MORE[words] ?? [])), ...file]
    if (isOfBatch) {
      const { status } = await rig.ask('POST', `/v2/${id}/batch?name=night`, { body: [{ input: {} }] })
      assert.equal(status, 200)
    }
    const mistyped = await runyard(...path, `${name}x`, ...more)
    assert.deepEqual(
      [mistyped.code, mistyped.stderr.includes(`did you mean ${name}?`)],
      [66, true],
      `${words}: ${mistyped.stderr}`,
    )
    if (ENDLESS.includes(words)) continue
    const { code, stderr } = await runyard(...path, name, ...more)
    assert.equal(code, 0, `${words}: ${stderr}`)
  }
})

describe('a name', () => {
  test('of several things lists their ids', async t => {
    const { rig, runyard } = await open(t)
    for (const kind of ['endpoints', 'keys', 'accounts', 'volumes'] as const) {
      const ids = [await make(rig, kind, 'twice'), await make(rig, kind, 'twice')]
      const { code, stderr } = await runyard(kind, 'get', 'twice')
      assert.equal(code, 64, kind)
      for (const id of ids) assert.ok(stderr.includes(id), `${kind}: ${stderr}`)
    }
  })

  test('that is the id of another thing does not hide it', async t => {
    const { rig, runyard } = await open(t)
    for (const kind of ['endpoints', 'templates', 'keys', 'accounts', 'volumes'] as const) {
      const first = await make(rig, kind, 'first')
      await make(rig, kind, first)
      const { stdout } = await runyard(kind, 'get', first, '--json')
      assert.equal(JSON.parse(stdout).id, first, kind)
    }
  })

  test('that is no id at all, such as a path, is found all the same', async t => {
    const { rig, runyard } = await open(t)
    for (const name of ['..', '.', 'a/b c', '?', 'ü']) {
      const id = await make(rig, 'templates', name)
      assert.equal(JSON.parse((await runyard('templates', 'get', name, '--json')).stdout).id, id, name)
    }
    assert.equal((await runyard('templates', 'get', '')).code, 66)
  })

  test('of a thing of another account is not found, and is not shown', async t => {
    const { rig } = await open(t)
    await rig.addKey('rpa_other', { owner: 'other' as OwnerId })
    const runyard = commandsOn(rig, 'rpa_other')
    for (const kind of ['endpoints', 'templates', 'secrets', 'volumes', 'registries'] as const) {
      const id = await make(rig, kind, 'hidden-one')
      const { code, stderr } = await runyard(kind, 'get', 'hidden-one')
      assert.deepEqual([code, stderr.includes(id), stderr.includes('there are no')], [66, false, true], stderr)
    }
  })

  test('of a global volume is said below the list of network volumes, and not among JSON lines', async t => {
    const { rig, runyard } = await open(t)
    assert.equal((await runyard('volumes', 'list')).stderr, '')
    await make(rig, 'global-volumes', 'everywhere')
    const { stdout, stderr } = await runyard('volumes', 'list')
    assert.deepEqual(
      [stdout, stderr],
      ['there are no volumes\n', 'there is 1 global volume: runyard global-volumes list\n'],
    )
    assert.deepEqual((({ stdout: out, stderr: err }) => [out, err])(await runyard('volumes', 'list', '--json')), [
      '',
      '',
    ])
  })

  test('is taken by options', async t => {
    const { rig, runyard } = await open(t)
    const made: Record<string, string> = {}
    for (const kind of Object.keys(KINDS) as KindName[]) made[kind] = await make(rig, kind, `one-of-${kind}`)
    const flags = ['--name', 'e', '--image', 'i', '--cpu', '2']
    const by = async (...words: string[]) => {
      const { code, stdout, stderr } = await runyard(...words, '--json')
      assert.equal(code, 0, stderr)
      return JSON.parse(stdout)
    }
    const endpoint = await by(
      'endpoints',
      'create',
      ...flags,
      '--volume',
      'one-of-volumes',
      '--registry',
      'one-of-registries',
    )
    assert.deepEqual([endpoint.networkVolumes, endpoint.registry], [[made.volumes], made.registries])
    const without = await by('endpoints', 'update', endpoint.id, '--volume', 'none')
    assert.deepEqual(without.networkVolumes, [])
    const again = await by('endpoints', 'update', 'e', '--volume', made.volumes!)
    assert.deepEqual(again.networkVolumes, [made.volumes])
    const everywhere = await by('endpoints', 'update', 'e', '--volume', 'one-of-global-volumes')
    assert.deepEqual(everywhere.networkVolumes, [made['global-volumes']])
    const key = await by('keys', 'create', '--jobs', 'one-of-endpoints')
    assert.deepEqual(key.scope.jobs, { [made.endpoints!]: 'write' })
    assert.equal((await by('keys', 'create', '--name', 'k', '--account', 'one-of-accounts')).account, made.accounts)
    const { id: job } = await by('jobs', 'create', 'one-of-endpoints', '--input', '{}')
    assert.equal((await by('jobs', 'get', job, '--endpoint', 'one-of-endpoints')).id, job)
    const { code, stderr } = await runyard('endpoints', 'create', ...flags, '--volume', 'nosuch')
    assert.deepEqual([code, /^runyard: --volume: .*nosuch.*one-of-volumes \(/.test(stderr)], [66, true], stderr)
  })
})

test('a job or a worker that is asked for by the name of an endpoint says what it is, and how they are listed', async t => {
  const { rig, runyard } = await open(t)
  await make(rig, 'endpoints', 'chat')
  for (const [words, list] of [
    [['jobs', 'get'], 'runyard jobs list chat'],
    [['jobs', 'delete'], 'runyard jobs list chat'],
    [['workers', 'get'], 'runyard workers list chat'],
  ] as const) {
    const { code, stderr } = await runyard(...words, 'chat')
    assert.deepEqual([code, stderr.includes('chat is an endpoint'), stderr.includes(list)], [66, true, true], stderr)
  }
})

test('a release that does not exist is not taken for an endpoint that does not', async t => {
  const { rig, runyard } = await open(t)
  const id = await make(rig, 'endpoints', 'chat')
  for (const given of [id, 'chat']) {
    const { code, stderr } = await runyard('endpoints', 'releases', given, '99')
    assert.deepEqual([code, stderr.includes('did you mean'), stderr.includes('99')], [66, false, true], stderr)
  }
})

test('usage of an endpoint that never was is not a list without records', async t => {
  const { rig, runyard } = await open(t)
  await make(rig, 'endpoints', 'chat')
  const { code, stderr } = await runyard('usage', 'caht')
  assert.deepEqual([code, stderr.includes('did you mean chat?')], [66, true], stderr)
})

test('a missing argument shows the usage, what there is, and how it is listed', async t => {
  const { rig, runyard } = await open(t)
  const id = await make(rig, 'endpoints', 'chat')
  for (const [words, argument, list] of [
    [['jobs', 'purge'], '<endpoint>', 'runyard endpoints list'],
    [['jobs', 'status'], '<job>', 'runyard jobs list <endpoint>'],
    [['logs'], '<id>', 'runyard endpoints list'],
    [['run'], '<endpoint>', 'runyard endpoints list'],
    [['batches', 'get', 'chat'], '<batch>', 'runyard batches list <endpoint>'],
  ] as const) {
    const { code, stdout, stderr } = await runyard(...words)
    const usage = stderr.split('\n').find(line => line.startsWith('Usage: runyard '))
    assert.deepEqual([code, stdout, usage?.includes(argument)], [64, '', true], stderr)
    assert.ok(stderr.includes(`chat (${id})`) && stderr.includes(list), stderr)
  }
  const { stderr } = await runyard('templates', 'delete')
  assert.ok(stderr.includes('There are no templates'), stderr)
})
