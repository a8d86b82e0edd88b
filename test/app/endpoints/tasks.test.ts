/** Tasks of RunPod's SDK 2.0: each has one worker, which runs once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TASK_RETENTION_MS } from '../../../src/core/endpoints/task.ts'
import { DEFAULT_OWNER, type EndpointId } from '../../../src/core/ids.ts'
import { CLOSED, GatewayAdmission } from '../../../src/gateway/entrance/admission.ts'
import { strangerKey } from '../../support/apps.ts'
import { openBalancedRig } from '../../support/balanced.ts'
import { commandsOn } from '../../support/command-line.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { KEY } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'
import { CPU, deploy, deployed, env, openTaskRig, podPath, pods, TOKEN } from '../../support/tasks.ts'

test('the id of a task makes the address of its program, and its worker starts at once', async t => {
  const { rig } = await openTaskRig(t)
  const { id, short } = await deployed(rig)
  assert.equal(id, `box.lan:8443/tasks/${short}`)
  await rig.clock.advance(5_000)
  const { spec } = rig.worker(0)
  assert.equal(rig.fleet.started.length, 1)
  assert.deepEqual(spec.serves, {
    port: 8080,
    healthPort: 8080,
    healthPath: '/ping',
    initTimeoutMs: 900_000,
    once: true,
  })
  assert.equal(spec.env.RUNPOD_TASK_TOKEN, TOKEN)
  assert.match(spec.env.RUNPOD_API_KEY ?? '', /^rpw_/, 'its program can end it')
  const [pod] = await pods(rig)
  assert.deepEqual(
    [pod.id, pod.name, pod.status, pod.image],
    [short, 'task-train-01', 'RUNNING', 'runpod/task:py3.11-latest'],
  )
  assert.equal(pod.workerId, spec.workerId)
  assert.doesNotMatch(JSON.stringify(await pods(rig)), new RegExp(`${TOKEN}|rpw_`))
})

test('its worker runs once: nothing starts after its end, and the task is shown as ended for a day', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig)
  await rig.clock.advance(5_000)
  rig.fleet.exit(rig.worker(0).id, { code: 1 })
  await rig.clock.advance(600_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.deepEqual(
    (await pods(rig)).map(({ status }: { status: string }) => status),
    ['EXITED'],
  )
  assert.equal((await rig.ask('GET', podPath(short))).json.status, 'EXITED')
  await rig.clock.advance(TASK_RETENTION_MS)
  assert.deepEqual(await pods(rig), [])
})

test('the server may be killed: the worker is found again, and the task goes on', async t => {
  const { rig } = await openTaskRig(t)
  await deployed(rig)
  await rig.clock.advance(5_000)
  await rig.crash()
  await rig.start()
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.equal(rig.fleet.running().length, 1)
  assert.equal((await pods(rig))[0].status, 'RUNNING')
  await rig.crash()
  rig.fleet.exit(rig.worker(0).id)
  await rig.start()
  await rig.clock.advance(60_000)
  assert.equal(rig.fleet.started.length, 1)
  assert.equal((await pods(rig))[0].status, 'EXITED')
})

test('a task is no endpoint of clients, and nobody changes it', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig)
  await rig.clock.advance(5_000)
  assert.deepEqual((await rig.ask('GET', '/v2/serverless')).json.endpoints, [])
  assert.deepEqual((await rig.ask('GET', '/v1/endpoints')).json, [])
  assert.deepEqual((await rig.graphql('{ myself { endpoints { id } pods { name desiredStatus } } }')).myself, {
    endpoints: [],
    pods: [{ name: 'task-train-01', desiredStatus: 'RUNNING' }],
  })
  assert.equal((await rig.ask('GET', `/v2/serverless/${short}`)).status, 404)
  assert.equal((await rig.ask('PATCH', `/v2/serverless/${short}`, { body: { workers: { max: 5 } } })).status, 404)
  assert.equal((await rig.ask('POST', `/v2/serverless/${short}/restart`)).status, 404)
  assert.equal((await rig.ask('POST', `/v2/${short}/run`, { body: { input: {} } })).status, 400)
})

test('DELETE ends a task by either id, also one that waits; an unknown one is 404', async t => {
  const { rig } = await openTaskRig(t)
  const { id } = await deployed(rig)
  await rig.clock.advance(5_000)
  assert.equal((await rig.ask('DELETE', podPath(id))).status, 204)
  await rig.clock.advance(5_000)
  assert.equal(rig.fleet.running().length, 0)
  assert.equal((await rig.ask('DELETE', podPath(id))).status, 404)
  rig.machine = aMachine([aGpu(0)])
  const gpu = { gpuTypeIdList: ['NVIDIA A40', 'NVIDIA GeForce RTX 4090'], gpuCount: 1 }
  const running = await deployed(rig, gpu)
  await rig.clock.advance(5_000)
  const waiting = await deployed(rig, gpu)
  await rig.clock.advance(5_000)
  assert.equal((await rig.ask('GET', podPath(waiting.short))).json.workerId, null)
  for (const { short } of [waiting, running]) {
    assert.equal((await rig.ask('DELETE', podPath(short))).status, 204)
  }
  assert.deepEqual(await pods(rig), [])
})

test('a task waits for a card with a reason, and gets it before nothing else takes it back', async t => {
  const { rig } = await openTaskRig(t)
  rig.machine = aMachine([aGpu(0)])
  const gpu = { gpuTypeIdList: ['NVIDIA GeForce RTX 4090'], gpuCount: 1 }
  const first = await deployed(rig, gpu)
  await rig.clock.advance(5_000)
  const second = await deployed(rig, { ...gpu, name: 'task-second' })
  await rig.clock.advance(120_000)
  assert.equal(rig.fleet.running().length, 1)
  assert.match((await rig.why(second.short)).summary, /no free GPU of pool ADA_24: .* task-train-01/)
  assert.equal((await rig.ask('GET', podPath(first.short))).json.gpu.type, 'NVIDIA GeForce RTX 4090')
  await rig.ask('DELETE', podPath(first.short))
  await rig.clock.advance(5_000)
  assert.equal((await rig.ask('GET', podPath(second.short))).json.status, 'RUNNING')
  assert.equal(rig.fleet.running().length, 1)
})

test('pods that are no tasks are refused with a sentence, and so is a server without HTTPS', async t => {
  const { rig } = await openTaskRig(t)
  const general = await deploy(rig, { ...CPU, env: [] })
  assert.match(general.json.errors[0].message, /no other pods/)
  const short = await deploy(rig, { ...CPU, env: [{ key: 'RUNPOD_TASK_TOKEN', value: 'short' }] })
  assert.match(short.json.errors[0].message, /20 characters/)
  const global = await deploy(rig, {
    ...CPU,
    volumeMounts: [{ volumeId: 'a', volumeType: 'OBJECT_STORE_VOLUME', mountPath: '/a' }],
  })
  assert.match(global.json.errors[0].message, /volume a not found/)
  assert.deepEqual(await pods(rig), [])
  const plain = await openBalancedRig(t)
  assert.match((await deploy(plain.rig)).json.errors[0].message, /HTTPS/)
})

test('a task has a network volume and a global one, each at its own path', async t => {
  const { rig } = await openTaskRig(t)
  const { volumes, globalVolumes } = servicesOf(rig)
  const make = { name: 'v', sizeGb: 10 }
  const { id: network } = await volumes.create(DEFAULT_OWNER, { ...make, dataCenter: 'EU-RO-1' })
  const { id: other } = await volumes.create(DEFAULT_OWNER, { ...make, dataCenter: 'EU-RO-1' })
  const { id: global } = await globalVolumes.create(DEFAULT_OWNER, { ...make, dataCenter: null })
  const everywhere = { volumeId: global, volumeType: 'OBJECT_STORE_VOLUME', mountPath: '/models' }
  const near = { volumeId: network, volumeType: 'NETWORK_VOLUME', mountPath: '/data' }
  const named = { kind: 'network', reference: 'mine', id: network, path: '/elsewhere' }
  const fields = { ...CPU, volumeMounts: [everywhere, near], env: env({ RUNPOD_MOUNTS: JSON.stringify([named]) }) }
  const { short } = await deployed(rig, fields)
  await rig.clock.advance(5_000)
  const { spec } = rig.worker(0)
  assert.deepEqual(spec.mounts, [
    { id: network, path: `/volumes/${network}`, at: '/data' },
    { id: global, path: `/volumes/${global}`, at: '/models' },
  ])
  assert.equal(spec.volume?.id, network)
  assert.deepEqual(JSON.parse(spec.env.RUNPOD_MOUNTS ?? ''), [
    { ...named, path: '/data' },
    { kind: 'global', reference: global, id: global, path: '/models' },
  ])
  await assert.rejects(globalVolumes.remove(DEFAULT_OWNER, global), { message: new RegExp(`in use by .*${short}`) })
  const refused: [mounts: object[], reason: RegExp][] = [
    [[near, { ...everywhere, mountPath: '/data/models' }], /must not lie in that of another volume/],
    [[{ ...near, mountPath: 'data' }], /must be an absolute path/],
    [[{ ...near, mountPath: '/data/../etc' }], /must be an absolute path/],
    [[{ ...near, mountPath: '/' }], /must be an absolute path/],
    [[{ ...near, mountPath: '/proc/self' }], /must not lie in \/proc/],
    [[near, { ...near, volumeId: other, mountPath: '/b' }], /one network volume and one global volume/],
  ]
  for (const [volumeMounts, reason] of refused) {
    assert.match((await deploy(rig, { ...CPU, volumeMounts })).json.errors[0].message, reason)
  }
})

test('a task ends when its function does not run and nobody asks for its result, whatever its program does', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig, { ...CPU, env: env({ RUNPOD_TASK_IDLE_TIMEOUT: '120' }) })
  const { short: usual } = await deployed(rig)
  await rig.clock.advance(5_000)
  const running = new Set<string>()
  const bearers = new Set<string>()
  rig.probes.text = (worker, path, bearer) => {
    assert.equal(path, '/result')
    bearers.add(bearer ?? '')
    return running.has(worker) ? '{"status": "RUNNING", "response": null}' : '{"status": "DONE", "response": {}}'
  }
  const status = async (id: string) => (await rig.ask('GET', podPath(id))).json
  const { workerId } = await status(short)
  running.add(workerId)
  await rig.clock.advance(600_000)
  assert.equal((await status(short)).status, 'RUNNING', 'its function runs')
  assert.deepEqual([...bearers], [TOKEN])
  running.clear()
  rig.probes.answer(workerId, { problem: 'no answer within 2 s', refused: false })
  await rig.clock.advance(40_000)
  assert.equal((await status(usual)).status, 'RUNNING', 'ten minutes and a margin are not over')
  await rig.clock.advance(300_000)
  assert.equal((await status(usual)).status, 'EXITED')
  assert.equal((await status(short)).status, 'RUNNING', 'a function may keep its process from answering')
  rig.probes.answer(workerId, { status: 200 })
  await rig.clock.advance(240_000)
  assert.equal((await status(short)).status, 'EXITED')
  const { system } = (await rig.ask('GET', `/v1/pod/${short}/logs`)).json
  assert.match(system.join('\n'), /nobody asked for the result of the task for \d+ s/)
  const why = await rig.why(short)
  assert.equal(why.cause, 'finished')
  assert.match(why.summary, /^the task task-train-01 has ended: its worker was ended because nobody asked/)
  assert.equal(why.action, null)
  assert.equal((await status(usual)).status, 'EXITED')
})

test('a task goes on whose program has not said in time if its function runs, although it answers later', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig)
  rig.probes.text = () => new Promise(resolve => void rig.clock.after(2_000, () => resolve(null)))
  await rig.clock.advance(3_000_000)
  assert.equal((await rig.ask('GET', podPath(short))).json.status, 'RUNNING')
  rig.probes.text = () => null
  await rig.clock.advance(900_000)
  assert.equal((await rig.ask('GET', podPath(short))).json.status, 'EXITED', 'it has no result to ask for')
})

test('usage, and what is watched, have a task with its name', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig)
  await rig.clock.advance(120_000)
  const { endpoints } = (await rig.ask('GET', '/ops/top')).json
  const watched = endpoints.find(({ id }: { id: string }) => id === short)
  assert.deepEqual([watched.name, watched.workers.length], ['task-train-01', 1])
  assert.equal((await rig.ask('DELETE', podPath(short))).status, 204)
  const second = await deployed(rig, { ...CPU, name: 'task-second' })
  await rig.clock.advance(120_000)
  rig.fleet.exit(rig.worker(1).id)
  await rig.clock.advance(60_000)
  const { code, stdout, stderr } = await commandsOn(rig)('usage')
  assert.equal(code, 0, stderr)
  assert.match(stdout, /task-second/)
  assert.match(stdout, /task-train-01 \(deleted\)/)
  assert.doesNotMatch(stdout, new RegExp(short))
  assert.doesNotMatch(stdout, new RegExp(second.short))
})

test('another account sees and ends no task of this one, and counts its own', async t => {
  const { rig } = await openTaskRig(t, { accountLimits: { workersMin: 1, objects: 10 } })
  const { short } = await deployed(rig)
  const key = await strangerKey(rig)
  assert.deepEqual((await rig.ask('GET', '/v2/pods', { key })).json.pods, [])
  assert.equal((await rig.ask('GET', podPath(short), { key })).status, 404)
  assert.equal((await rig.ask('DELETE', podPath(short), { key })).status, 404)
  assert.equal((await deploy(rig, CPU, { key })).json.errors, undefined)
  const second = await deploy(rig, CPU, { key })
  assert.match(second.json.errors[0].message, /limit workersMin of 1/)
})

test('a process of the machine is for a key of the operator with all rights', async t => {
  const { rig } = await openTaskRig(t, { runsOnMachine: image => image.startsWith('runpod/') })
  const manager = await rig.addKey('rpa_manager', {
    scope: { type: 'restricted', management: 'write', jobs: 'write' } as never,
  })
  for (const key of [manager, await strangerKey(rig)]) {
    const { json } = await deploy(rig, CPU, { key })
    assert.equal(json.data.pod, null)
    assert.match(json.errors[0].message, /operator/)
  }
  assert.deepEqual(await pods(rig), [])
  await deployed(rig)
})

test('its program ends it with the token of its worker, and no other task', async t => {
  const { rig } = await openTaskRig(t)
  const first = await deployed(rig)
  await deployed(rig, { ...CPU, name: 'task-other' })
  await rig.clock.advance(5_000)
  const ofFirst = rig.fleet.started.find(({ endpointId }) => endpointId === first.short)!
  const other = rig.fleet.started.find(({ endpointId }) => endpointId !== first.short)!
  const key = ofFirst.env.RUNPOD_API_KEY!
  const end = (podId: string) =>
    rig.ask('POST', '/graphql', {
      key,
      body: { query: 'mutation ($id: String!) { podTerminate(input: {podId: $id}) }', variables: { id: podId } },
    })
  assert.match((await end(other.workerId)).json.errors[0].message, /^pod .* not found$/)
  assert.deepEqual((await end(ofFirst.workerId)).json, { data: { podTerminate: null } })
  await rig.clock.advance(5_000)
  assert.deepEqual(
    (await pods(rig)).map(({ name }: { name: string }) => name),
    ['task-other'],
  )
})

test('the address of a task needs no key and passes its token on; that of an endpoint needs one', async t => {
  const { rig } = await openTaskRig(t)
  const { short } = await deployed(rig)
  const plain = await rig.endpoint({ type: 'LB', scalerType: 'REQUEST_COUNT', scalerValue: 4 })
  const { access } = servicesOf(rig)
  const gate = new GatewayAdmission(rig.ports, access, CLOSED, queue => queue)
  t.after(() => gate.close())
  const admit = async (endpointId: EndpointId, authorization: string | null, isTask: boolean) =>
    gate.admit({
      method: 'POST',
      peer: '203.0.113.7',
      host: 'box.lan:8443',
      requestId: 'one',
      route: { endpointId, prefix: null, path: '/submit', host: null, ...(isTask && { isTask: true }) },
      rawHeaders: authorization === null ? [] : ['Authorization', `Bearer ${authorization}`],
    })
  const admitted = await admit(short, TOKEN, true)
  assert.match(JSON.stringify(admitted), new RegExp(TOKEN))
  assert.doesNotMatch(JSON.stringify(await admit(short, KEY, true)), new RegExp(KEY), 'a key of the server stays here')
  await assert.rejects(admit(short, null, false), { code: 'unauthorized' })
  await assert.rejects(admit(plain, null, true), { code: 'not_found' })
  await assert.rejects(admit('nothing' as EndpointId, null, true), { code: 'not_found' })
})

test('its output is at the addresses of pods, by each of its ids', async t => {
  const { rig } = await openTaskRig(t)
  const { id, short } = await deployed(rig)
  await rig.clock.advance(5_000)
  const { id: worker } = rig.worker(0)
  rig.print(worker, 'hello')
  for (const text of [id, short, worker]) {
    const { json } = await rig.ask('GET', `/v1/pod/${text}/logs?type=container`)
    assert.match(json.container.join('\n'), /hello$/, text)
  }
  assert.equal((await rig.ask('GET', '/v1/pod/nothing/logs')).status, 404)
})
