/** Tasks that functions start with the token of their worker: what they may have, how many, and how long they live. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runtimeImage } from '../../../src/core/endpoints/runtime-image.ts'
import { DEFAULT_OWNER, type EndpointId } from '../../../src/core/ids.ts'
import { strangerKey } from '../../support/apps.ts'
import { commandsOn } from '../../support/command-line.ts'
import { KEY, type Rig, type RigOptions } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'
import { CPU, deploy, deployed, env, openTaskRig, podPath, pods } from '../../support/tasks.ts'

interface Starter {
  readonly endpoint: EndpointId
  readonly key: string
}

/** A function whose worker runs, with the key of its worker. */
async function openFunction(rig: Rig, { name = 'all', more = {} as Record<string, string>, fields = {} } = {}) {
  const variables = { FLASH_RESOURCE_NAME: name, RUNPOD_API_KEY: KEY, ...more }
  const template = {
    name: `of-${name}`,
    imageName: 'runpod/queue:py3.11-latest',
    containerDiskInGb: 10,
    dockerArgs: '',
    env: Object.entries(variables).map(([key, value]) => ({ key, value })),
  }
  const endpoint = await rig.endpoint({ name, template, workersMin: 1, ...fields })
  await rig.clock.advance(1_000)
  return starterOf(rig, endpoint)
}

function starterOf(rig: Rig, endpoint: EndpointId): Starter {
  const started = rig.fleet.started.find(({ endpointId }) => endpointId === endpoint)
  return { endpoint, key: started?.env.RUNPOD_API_KEY ?? '' }
}

/** A task of a function, whose worker runs. */
async function nested(rig: Rig, { key }: Starter, fields: object = {}): Promise<Starter> {
  const { json, text } = await deploy(rig, { ...CPU, ...fields }, { key })
  assert.equal(json.errors, undefined, text)
  const { id } = json.data.pod
  await rig.clock.advance(5_000)
  return starterOf(rig, id.slice(id.lastIndexOf('/') + 1))
}

async function refusal(rig: Rig, { key }: Starter, fields: object = {}): Promise<string> {
  const { json } = await deploy(rig, { ...CPU, ...fields }, { key })
  assert.equal(json.data.pod, null)
  return json.errors[0].message
}

async function opened(t: TestContext, options: RigOptions = {}) {
  const { rig } = await openTaskRig(t, options)
  return { rig, whole: await openFunction(rig) }
}

test('a function starts a task with the token of its worker, sees it, and ends it', async t => {
  const { rig, whole } = await opened(t)
  const task = await nested(rig, whole, { env: env({ RUNPOD_API_KEY: 'rpa_something' }) })
  assert.match(task.key, /^rpw_/)
  assert.notEqual(task.key, whole.key)
  const shown = (await rig.ask('GET', podPath(task.endpoint))).json
  assert.equal(shown.startedBy, whole.endpoint)
  assert.equal((await rig.ask('GET', podPath(task.endpoint), { key: whole.key })).json.id, task.endpoint)
  assert.equal((await rig.ask('GET', `/v2/${whole.endpoint}/health`, { key: task.key })).status, 200, 'of the same app')
  assert.equal((await rig.ask('DELETE', podPath(task.endpoint), { key: whole.key })).status, 204)
  assert.deepEqual(await pods(rig), [])
  const ended = (await rig.ask('GET', '/v2/audit')).json.entries.find(
    ({ operation }: { operation: string }) => operation === 'deletePod',
  )
  assert.match(JSON.stringify(ended), /worker:/)
})

test('a worker sees and ends its own tree alone, and nothing else of the account', async t => {
  const { rig, whole } = await opened(t)
  const other = await openFunction(rig, { name: 'other' })
  const mine = await nested(rig, whole)
  const below = await nested(rig, mine)
  const theirs = await nested(rig, other)
  const { short: person } = await deployed(rig)
  await rig.clock.advance(5_000)
  const status = async (method: string, id: string, { key }: Starter) =>
    (await rig.ask(method, podPath(id), { key })).status
  for (const id of [theirs.endpoint, person]) {
    assert.equal(await status('GET', id, whole), 404)
    assert.equal(await status('DELETE', id, whole), 404)
    assert.equal((await rig.ask('GET', `/v1/pod/${id}/logs`, { key: whole.key })).status, 403)
    assert.equal((await rig.ask('GET', `${podPath(id)}/logs`, { key: whole.key })).status, 404)
  }
  assert.equal(await status('GET', mine.endpoint, below), 404, 'not the one that started it')
  assert.equal(await status('DELETE', mine.endpoint, below), 404)
  assert.equal(await status('GET', below.endpoint, whole), 200)
  assert.equal((await rig.ask('GET', '/v2/pods', { key: whole.key })).status, 403)
  assert.equal((await rig.ask('GET', '/v2/registries', { key: mine.key })).status, 403)
  assert.equal((await rig.ask('GET', podPath(mine.endpoint), { key: await strangerKey(rig) })).status, 404)
})

test('the depth of a tree and the number of its running tasks are bounded', async t => {
  const { rig, whole } = await opened(t)
  const one = await nested(rig, whole)
  const two = await nested(rig, one)
  const three = await nested(rig, two)
  assert.match(await refusal(rig, three), /up to 3 levels below the first function, and this one would be on level 4/)
  const asked = await Promise.all(Array.from({ length: 20 }, () => deploy(rig, CPU, { key: whole.key })))
  const refused = asked.filter(({ json }) => json.errors !== undefined)
  assert.equal(refused.length, 3, 'twenty with the three that run')
  const sentence = refused[0]!.json.errors[0].message
  assert.match(sentence, /20 tasks that functions started have not ended .* wait for one of them$/)
  assert.doesNotMatch(sentence, /insufficient capacity|no available machine|out of stock|resources to deploy/i)
  assert.match(await refusal(rig, one), /wait for one of them/, 'all levels count')
  const other = await openFunction(rig, { name: 'other' })
  await nested(rig, other)
  await rig.ask('DELETE', podPath(three.endpoint), { key: whole.key })
  await nested(rig, one)
})

test('tasks that fail in a loop and are deleted by nobody are bounded, too', async t => {
  const { rig, whole } = await opened(t)
  for (let round = 0; round < 10; round += 1) {
    const asked = await Promise.all(Array.from({ length: 20 }, () => deploy(rig, CPU, { key: whole.key })))
    assert.ok(asked.every(({ json }) => json.errors === undefined))
    await rig.clock.advance(1_000)
    const tasks = rig.fleet.started.filter(({ serves }) => serves !== null).map(({ workerId }) => workerId)
    for (const id of rig.fleet.running().filter(worker => tasks.includes(worker))) rig.fleet.exit(id)
    await rig.clock.advance(1_000)
  }
  assert.match(await refusal(rig, whole), /^200 tasks .* have ended and were not deleted/)
  await nested(rig, await openFunction(rig, { name: 'other' }))
})

test('a worker that has ended starts nothing with its token', async t => {
  const { rig, whole } = await opened(t)
  const task = await nested(rig, whole)
  assert.equal((await rig.ask('GET', podPath(task.endpoint), { key: task.key })).status, 200)
  rig.fleet.exit(rig.fleet.started.find(({ endpointId }) => endpointId === task.endpoint)!.workerId)
  await rig.clock.advance(1_000)
  const { text } = await deploy(rig, CPU, { key: task.key })
  assert.match(text, /not found|key/)
  assert.equal((await pods(rig)).length, 1)
})

test('the limits of the account count tasks of functions', async t => {
  const { rig } = await openTaskRig(t, { accountLimits: { workersMin: 2 } })
  const key = await strangerKey(rig)
  const first = await deploy(rig, CPU, { key })
  assert.equal(first.json.errors, undefined)
  await rig.clock.advance(5_000)
  const id = first.json.data.pod.id
  const starter = starterOf(rig, id.slice(id.lastIndexOf('/') + 1))
  await nested(rig, starter)
  assert.match(await refusal(rig, starter), /limit workersMin of 2/)
})

test('a task of a function has what its worker has, and no other volume, secret, build, folder, registry or app', async t => {
  const { rig } = await openTaskRig(t)
  const { volumes } = servicesOf(rig)
  const make = (name: string) => volumes.create(DEFAULT_OWNER, { name, sizeGb: 10, dataCenter: 'EU-RO-1' })
  const [{ id: own }, { id: foreign }] = [await make('own'), await make('foreign')]
  const secrets = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id } }'
  for (const name of ['known', 'hidden']) await rig.graphql(secrets, { input: { name, value: 'x' } })
  const registry = { name: 'lan', username: 'u', password: 'p' }
  const { id: registryId } = (await rig.ask('POST', '/v2/registries', { body: registry })).json
  const more = { WORD: '{{ RUNPOD_SECRET_known }}' }
  const whole = await openFunction(rig, { more, fields: { networkVolumeIds: [{ networkVolumeId: own }] } })
  const mount = (volumeId: string) => ({
    volumeMounts: [{ volumeId, volumeType: 'NETWORK_VOLUME', mountPath: '/data' }],
  })
  const refused: [fields: object, sentence: RegExp][] = [
    [mount(foreign), new RegExp(`no other volume \\(${foreign}\\)`)],
    [{ env: env({ A: 'x {{ RUNPOD_SECRET_hidden }}' }) }, /no other secret \(hidden\)/],
    [{ env: env({ FLASH_RESOURCE_NAME: 'x', RUNPOD_BUILD_ID: 'abcdefghij0123456789abcd' }) }, /no other build/],
    [{ env: env({ RUNPOD_DEV_APP: 'shop' }) }, /no other dev session/],
    [{ containerRegistryAuthId: registryId }, /no other registry/],
  ]
  for (const [fields, sentence] of refused) assert.match(await refusal(rig, whole, fields), sentence)
  const seen = (await rig.ask('GET', '/v2/network-volumes', { key: whole.key })).json.networkVolumes
  assert.deepEqual(
    seen.map(({ id }: { id: string }) => id),
    [own],
    'the SDK looks it up by its name',
  )
  assert.deepEqual((await rig.ask('GET', '/v2/global-volumes', { key: whole.key })).json.globalVolumes, [])
  assert.equal((await rig.ask('GET', `/v2/network-volumes/${foreign}`, { key: whole.key })).status, 403)
  const task = await nested(rig, whole, { ...mount(own), env: env({ A: '{{ RUNPOD_SECRET_known }}' }) })
  assert.equal(rig.fleet.started.find(({ endpointId }) => endpointId === task.endpoint)?.env.A, 'x')
})

test('a task of a function runs where its worker does: a container starts no process of the machine', async t => {
  const { rig } = await openTaskRig(t, { runsOnMachine: image => runtimeImage(image) !== null })
  const process = await openFunction(rig)
  await nested(rig, process)
  assert.match(await refusal(rig, process, { imageName: 'dir:/srv/other' }), /no other folder \(dir:\/srv\/other\)/)
  const away = { imageName: 'other/image:1' }
  assert.match(
    await refusal(rig, process, away),
    /the worker is a process of the machine, and the task would be a cont/,
  )
  const { short } = await deployed(rig, { ...CPU, ...away })
  await rig.clock.advance(5_000)
  const container = starterOf(rig, short)
  assert.match(await refusal(rig, container), /the worker is a container, and the task would be a process/)
  await nested(rig, container, away)
})

test('the tasks of a function end when it is removed, those of a task with it, and not with a worker that rests', async t => {
  const { rig, whole } = await opened(t)
  const one = await nested(rig, whole)
  const two = await nested(rig, one)
  const three = await nested(rig, two)
  await rig.ask('PATCH', `/v2/serverless/${whole.endpoint}`, { body: { workers: { min: 0, max: 0 } } })
  await rig.clock.advance(60_000)
  const ids = async () => (await pods(rig)).map(({ id }: { id: string }) => id)
  assert.deepEqual(await ids(), [one.endpoint, two.endpoint, three.endpoint])
  assert.equal((await rig.ask('DELETE', podPath(two.endpoint))).status, 204)
  await rig.clock.advance(5_000)
  assert.deepEqual(await ids(), [one.endpoint])
  assert.equal((await rig.ask('DELETE', `/v2/serverless/${whole.endpoint}`)).status, 204)
  await rig.clock.advance(5_000)
  assert.deepEqual(await ids(), [])
  assert.equal(rig.fleet.running().length, 0)
})

test('the tasks of what was removed end after a crash of the server, too', async t => {
  const { rig, whole } = await opened(t)
  await nested(rig, whole)
  await rig.ports.store.endpoints.remove(whole.endpoint, rig.clock.now())
  await rig.crash()
  await rig.start()
  await rig.clock.advance(10_000)
  assert.deepEqual(await pods(rig), [])
})

test('why and what is watched say which function started a task', async t => {
  const { rig, whole } = await opened(t)
  const task = await nested(rig, whole)
  const words = new RegExp(`started by a function of endpoint all \\(${whole.endpoint}\\)`)
  const run = commandsOn(rig)
  for (const command of ['why', 'top']) {
    const { code, stdout, stderr } = await run(command, task.endpoint)
    assert.equal(code, 0, stderr)
    assert.match(stdout, words, command)
  }
  const below = await nested(rig, task)
  assert.match((await run('why', below.endpoint)).stdout, new RegExp(`of task task-train-01 \\(${task.endpoint}\\)`))
})
