/** Suspended containers: the server suspends them from outside, by the pids of the machine. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, type TestContext, test } from 'node:test'
import type { VolumeId } from '../../../src/core/ids.ts'
import { findGroups } from '../../../src/drivers/base/process-groups.ts'
import type { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import { type DockerMachine, noDocker, openDockerMachine } from '../../support/docker.ts'
import { FakeGpus, noFakeGpus } from '../../support/fake-gpus.ts'
import { patient } from '../../support/patience.ts'
import { until } from '../../wire/support/until.ts'

const LOCK_MS = 5_000
const MOUNTED = '/runpod-volume'
const skip = noDocker !== false ? noDocker : noFakeGpus

let machine: DockerMachine
let driver: DockerDriver
if (skip === false) {
  beforeEach(async () => {
    machine = await openDockerMachine()
    driver = machine.driver()
  })
  afterEach(() => machine.close())
}

async function suspendedContainer(context: TestContext) {
  const gpus = new FakeGpus(context)
  const volume = { id: 'volume' as VolumeId, path: gpus.shared() }
  let spec = machine.spec(['python3', `${MOUNTED}/fake-worker.py`, '100'], { volume })
  let handle = ''
  const worker = await gpus.linked(async env => {
    spec = { ...spec, env: { ...spec.env, ...env } }
    handle = await driver.start(spec)
  }, MOUNTED)
  const { workerId } = spec
  await worker.ask('synchronize')
  const { container, process } = JSON.parse(handle) as { container: string; process: { pid: number } }
  const family = (await driver.processes(workerId))!
  const freeze = () => driver.freeze(workerId)
  const outcome = await gpus.suspender().suspend(family, LOCK_MS, { freeze })
  assert.ok(outcome.outcome === 'suspended', JSON.stringify(outcome))
  assert.equal(outcome.processes.length, 1)
  const held = findGroups(process.pid, container).unified
  return { ...outcome, ...worker, gpus, workerId, handle, held: held === null ? null : join(held, 'held') }
}

describe('a suspended container', { skip, timeout: patient(120_000) }, () => {
  test('survives the calls of its own threads, also under another server', async t => {
    const { card, processes, holdProblem, held, gpus, workerId, handle, ask, sum } = await suspendedContainer(t)
    if (held === null) assert.equal(holdProblem, 'its container has no control group of version 2')
    else assert.deepEqual([holdProblem, existsSync(held)], [null, true])
    await driver.close()
    const next = machine.driver()
    assert.equal(await next.adopt(workerId, handle), true)
    const family = (await next.processes(workerId))!
    const outcome = await gpus.suspender().resume(card, processes, family, () => next.thaw(workerId))
    assert.equal(outcome.outcome, 'resumed', JSON.stringify(outcome))
    assert.equal((await ask('sum')).sum, sum)
    const { turns } = await ask('turns')
    while ((await ask('turns')).turns === turns);
    await next.kill(workerId)
  })

  test('is killed when it should end, and leaves no group behind', async t => {
    const { held, workerId, ended } = await suspendedContainer(t)
    await driver.terminate(workerId)
    await ended
    await until('no group of held threads', () => held === null || !existsSync(held))
  })
})
