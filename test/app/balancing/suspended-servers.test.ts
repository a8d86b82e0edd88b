/** Workers that serve requests and are suspended: they get no request and no health check before they are resumed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PlayedGpus } from '../../../sim/played-gpus.ts'
import { balancedEndpoint, openBalancedRig, serveOnce } from '../../support/balanced.ts'
import { aGpu, aMachine } from '../../support/machines.ts'

const HOOKS = [
  { key: 'RUNYARD_SLEEP_URL', value: '/sleep' },
  { key: 'RUNYARD_WAKE_URL', value: '/wake_up' },
]

/** A worker with 20 GB of a card that had a request and is suspended; a copy takes three seconds. */
async function openSuspended(t: TestContext, env: readonly object[] = []) {
  const machine: { gpus: PlayedGpus | null } = { gpus: null }
  const { rig, gateway } = await openBalancedRig(t, {
    onStart: spec => machine.gpus?.start(spec.workerId, ['GPU-0'], 20),
    processes: worker => machine.gpus?.family(worker) ?? null,
    gpuSuspender: ({ clock, fleet }) => {
      const isFrozen = (worker: string) => [...fleet.frozen].some(id => id === worker)
      machine.gpus = new PlayedGpus({ clock, isFrozen, isAlive: () => true, copyMs: () => 3_000 })
      return machine.gpus.suspender()
    },
  })
  rig.machine = aMachine([aGpu(0)])
  const states: string[] = []
  rig.probes.posted = () => {
    const worker = rig.fleet.started[0]!.workerId
    states.push(machine.gpus!.stateOf(worker))
    return { status: 200 }
  }
  const fields = { flashBootType: 'FLASHBOOT', idleTimeout: 1, gpuIds: 'ADA_24', instanceIds: undefined, workersMax: 1 }
  const id = await balancedEndpoint(rig, { ...fields, env })
  const worker = await serveOnce({ rig, gateway }, id)
  await rig.clock.advance(6_000)
  assert.equal(machine.gpus!.stateOf(worker.id), 'checkpointed')
  return { rig, gateway, gpus: machine.gpus!, id, worker, states }
}

test('a suspended server is a target again only after it was resumed and answered a health check', async t => {
  const { rig, gateway, gpus, id, worker } = await openSuspended(t)
  const checks = rig.probes.counts.get(worker.id)
  gateway.wait(id, 1)
  await rig.clock.advance(2_500)
  assert.deepEqual([gateway.ready(id), rig.probes.counts.get(worker.id)], [[], checks])
  await rig.clock.advance(1_500)
  assert.deepEqual([gateway.ready(id), gpus.runs(worker.id)], [[worker.id], true])
  assert.equal(rig.fleet.started.length, 1)
})

test('a server with sleep hooks is asked to sleep before it is suspended, and to wake after it was resumed', async t => {
  const { rig, gateway, id, worker, states } = await openSuspended(t, HOOKS)
  gateway.wait(id, 1)
  await rig.clock.advance(4_000)
  assert.deepEqual([gateway.ready(id), states], [[worker.id], ['running', 'running']])
  assert.deepEqual(
    rig.probes.posts.map(({ path }) => path),
    ['/sleep', '/wake_up'],
  )
})
