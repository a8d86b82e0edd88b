/** Releases whose workers crash, under steady load. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { balancedEndpoint, openBalancedRig } from '../../support/balanced.ts'
import { REFUSED } from '../../support/mock-probes.ts'
import { openRig } from '../../support/rig.ts'
import { RigProgram as Program } from '../../support/rig-program.ts'

const BROKEN = { env: [{ key: 'RELEASE', value: 'broken' }] }

for (const { name, fields } of [
  { name: 'with room for more workers', fields: { workersMax: 8 } },
  { name: 'where max leaves no room', fields: { workersMin: 3, workersMax: 3 } },
  { name: 'where there may be one worker only', fields: { workersMax: 1 } },
]) {
  test(`a release that crashes under steady load fails no job, is named within ten seconds, and is undone by one call: ${name}`, async t => {
    const rig = await openRig(t)
    const program = new Program(rig)
    const endpoint = await rig.endpoint({ ...fields, scalerType: 'REQUEST_COUNT', scalerValue: 1 })
    await program.load(endpoint, 5_000)
    await rig.change(endpoint, BROKEN)
    await program.load(endpoint, 10_000)
    const why = await rig.why(endpoint)
    const said = JSON.stringify(why)
    assert.match(said, /the rollout of release 2 has stopped: \d workers of it crashed/)
    assert.match(said, /exited with code 3/)
    assert.match(said, new RegExp(`runyard endpoints rollback ${endpoint} 1`))
    const stopped = rig.happened('rollout.stopped')
    assert.deepEqual(
      stopped.map(({ version, working }) => [version, working]),
      [[2, 1]],
    )
    const list = async () => (await rig.ask('GET', `/v2/serverless/${endpoint}/releases`)).json
    const { rollout } = await list()
    assert.deepEqual([rollout.state, rollout.workingVersion, rollout.inProgress], ['STOPPED', 1, true])
    const crashed = rig.fleet.started.filter(({ env }) => env.RELEASE === 'broken').length
    await program.load(endpoint, 5_000)
    assert.equal(
      rig.fleet.started.filter(({ env }) => env.RELEASE === 'broken').length,
      crashed,
      'none is started any more',
    )
    const { jobs } = await rig.health(endpoint)
    assert.ok(jobs.completed! > (fields.workersMax === 1 ? 20 : 70), `only ${jobs.completed} jobs got done meanwhile`)
    assert.equal((await rig.ask('POST', `/v2/serverless/${endpoint}/releases/1/rollback`)).status, 201)
    await program.load(endpoint, 5_000)
    assert.equal((await list()).rollout.state, 'COMPLETE')
    assert.deepEqual(await program.outcome(endpoint), { statuses: ['COMPLETED'], retried: 0 })
  })
}

test('a stopped rollout outlives a restart of the server, and a queue that had no worker left goes on', async t => {
  const rig = await openRig(t)
  const program = new Program(rig)
  const endpoint = await rig.endpoint({ workersMax: 2, idleTimeout: 1 })
  await program.load(endpoint, 1_000)
  await rig.clock.advance(20_000)
  assert.deepEqual(await rig.alive(endpoint), [])
  await rig.change(endpoint, BROKEN)
  await program.load(endpoint, 6_000)
  assert.equal((await program.outcome(endpoint)).statuses.join(), 'COMPLETED')
  await rig.crash()
  await rig.start()
  program.forget()
  await rig.clock.leap(2 * 86_400_000)
  await program.load(endpoint, 4_000)
  assert.equal((await rig.ask('GET', `/v2/serverless/${endpoint}/releases`)).json.rollout.state, 'STOPPED')
  assert.equal((await program.outcome(endpoint)).statuses.join(), 'COMPLETED')
  assert.deepEqual(
    [...new Set((await rig.store.workers.list(endpoint)).map(({ version }) => version))],
    [1],
    'those of the last release that worked',
  )
})

test('a new release ends the stop', async t => {
  const rig = await openRig(t)
  const program = new Program(rig)
  const endpoint = await rig.endpoint({ workersMin: 1, workersMax: 2 })
  await program.load(endpoint, 1_000)
  await rig.change(endpoint, BROKEN)
  await program.load(endpoint, 8_000)
  await rig.change(endpoint, { env: [{ key: 'RELEASE', value: 'mended' }] })
  await program.load(endpoint, 3_000)
  const versions = (await rig.alive(endpoint)).map(({ version }) => version)
  assert.deepEqual([...new Set(versions)], [3])
})

test('a release that names a missing secret leaves the workers of the one before alone, also the only one', async t => {
  const rig = await openRig(t)
  const program = new Program(rig)
  const endpoint = await rig.endpoint({ workersMax: 1, workersMin: 1 })
  await program.load(endpoint, 1_000)
  await rig.change(endpoint, { env: [{ key: 'T', value: '{{ RUNPOD_SECRET_token }}' }] })
  await program.load(endpoint, 3_000)
  const why = await rig.why(endpoint)
  assert.match(JSON.stringify(why), /rollout of release 2 has stopped: no worker of it can be started: .*token/)
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ version }) => version),
    [1],
  )
  await rig.ask('POST', '/v2/account/secrets', { body: { name: 'token', value: 'v' } })
  await program.load(endpoint, 40_000)
  assert.deepEqual(
    (await rig.alive(endpoint)).map(({ version }) => version),
    [2],
  )
})

test('a load-balancing endpoint whose new workers crash stops after three, and scales the release that worked', async t => {
  const { rig, gateway } = await openBalancedRig(t)
  const id = await balancedEndpoint(rig, { workersMin: 1, workersMax: 4 })
  await rig.clock.advance(500)
  const old = rig.worker(0).id
  gateway.serve(id, old, 1)
  rig.probes.usual = REFUSED
  rig.probes.answer(old, { status: 200 })
  await rig.change(id, BROKEN)
  gateway.fewestReady.set(id, 1)
  const broken = () => rig.fleet.started.filter(({ env }) => env.RELEASE === 'broken')
  for (let time = 0; time < 50; time += 1) {
    await rig.clock.advance(200)
    for (const { workerId } of broken())
      if (rig.fleet.running().includes(workerId)) rig.fleet.exit(workerId, { code: 3 })
  }
  assert.equal(broken().length, 3)
  assert.equal((await rig.why(id)).cause, 'rollout_stopped')
  gateway.serve(id, old, 6)
  await rig.clock.advance(3_000)
  const last = rig.worker(-1)
  assert.notEqual(last.spec.env.RELEASE, 'broken')
  assert.ok(rig.fleet.running().length > 1)
  assert.equal(gateway.fewestReady.get(id), 1)
})
