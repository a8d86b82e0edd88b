/** The machine as its operator sees it: what there is, who has it, and what waits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_OWNER, type OwnerId } from '../../../src/core/ids.ts'
import type { Finding } from '../../../src/core/observing/diagnosis.ts'
import type { HostInspection } from '../../../src/ports/host-inspection.ts'
import { aGpu, aMachine } from '../../support/machines.ts'
import { openRig, type Rig } from '../../support/rig.ts'

const FINDING: Finding = { check: 'memory', state: 'ok', message: 'enough', action: null }

async function machine(rig: Rig) {
  const { status, json } = await rig.ask('GET', '/v2/machine')
  assert.equal(status, 200, JSON.stringify(json))
  return json
}

test('each GPU is shown with its use and the worker that has it, and what has no place with what it waits for', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([aGpu(0), aGpu(1, 'NVIDIA L4', { problem: 'its memory has failed' })])
  rig.gpuUse.set('GPU-0', { busy: 70, memory: 55 })
  const chat = await rig.endpoint({ name: 'chat', instanceIds: undefined, gpuIds: 'ADA_24', workersMin: 1 })
  await rig.clock.advance(100)
  const late = await rig.endpoint({ name: 'late', instanceIds: undefined, gpuIds: 'ADA_24', workersMin: 1 })
  await rig.clock.advance(100)
  const { gpus, waiting, workers } = await machine(rig)
  const [first, second] = gpus
  assert.deepEqual(
    [first.id, first.index, first.type, first.memoryMb, first.busyPercent, first.memoryUsedPercent, first.state],
    ['GPU-0', 0, 'NVIDIA GeForce RTX 4090', 24_576, 70, 55, 'IN_USE'],
  )
  const [holder] = first.holders
  const [worker] = await rig.alive(chat)
  assert.deepEqual(
    [holder.endpointId, holder.endpointName, holder.account, holder.workerId, holder.asleep],
    [chat, 'chat', DEFAULT_OWNER, worker!.id, false],
  )
  assert.ok(['starting', 'initializing', 'placing'].includes(holder.phase), holder.phase)
  assert.ok(holder.sinceMs > 0)
  assert.deepEqual([second.state, second.problem, second.busyPercent], ['PROBLEM', 'its memory has failed', null])
  assert.deepEqual(
    waiting.map((one: Record<string, unknown>) => [one.endpointId, one.endpointName, one.workers, one.resource]),
    [[late, 'late', 1, 'gpu']],
  )
  assert.match(waiting[0].reason, /ADA_24/)
  assert.equal(workers.total, 1)
})

test('processors, memory and disk are shown with what is used of them', async t => {
  const rig = await openRig(t)
  rig.machine = aMachine([])
  const before = await machine(rig)
  assert.deepEqual([before.vcpus, before.disk, before.gpus], [{ total: 8, used: 0 }, null, []])
  assert.deepEqual(before.memoryMb, { total: 32_768, used: null, available: null, assigned: 0 })
  rig.memory = { totalBytes: 16 * 2 ** 30, availableBytes: 4 * 2 ** 30 }
  rig.disk = { totalBytes: 1000, availableBytes: 300 }
  await rig.endpointWithWorker()
  const { vcpus, memoryMb, disk, containers, isolation } = await machine(rig)
  assert.deepEqual(vcpus, { total: 8, used: 2 })
  assert.deepEqual(memoryMb, { total: 16_384, used: 12_288, available: 4_096, assigned: 8_192 })
  assert.deepEqual(disk, { totalBytes: 1000, availableBytes: 300 })
  assert.deepEqual([containers, isolation.processes], [null, null])
})

test('a diagnosis runs once at a time, and is kept for a while unless it failed', async t => {
  let runs = 0
  let ends: () => void = () => {}
  const inspection: HostInspection = {
    processIsolation: 'caged',
    engine: async () => null,
    async diagnose() {
      runs += 1
      if (runs === 1) await new Promise<void>(resolve => (ends = resolve))
      if (runs === 2) throw new Error('broken')
      return [FINDING]
    },
  }
  const rig = await openRig(t, { inspection })
  const ask = () => rig.ask('GET', '/v2/machine/diagnosis')
  const both = [ask(), ask()]
  await rig.clock.settle()
  ends()
  for (const { status, json } of await Promise.all(both)) {
    assert.deepEqual([status, json.findings], [200, [FINDING]])
    assert.equal(Date.parse(json.at), rig.clock.now())
  }
  await rig.clock.advance(29_000)
  assert.equal((await ask()).status, 200)
  assert.equal(runs, 1)
  await rig.clock.advance(2_000)
  assert.equal((await ask()).status, 500)
  assert.equal((await ask()).status, 200)
  assert.equal(runs, 3)
})

test('the machine is for keys of the operator that may read management', async t => {
  const rig = await openRig(t)
  const stranger = await rig.addKey('rpa_stranger', { owner: 'stranger' as OwnerId })
  const worker = await rig.addKey('rpa_jobs', { scope: { type: 'restricted', management: 'none', jobs: 'write' } })
  for (const path of ['/v2/machine', '/v2/machine/diagnosis']) {
    for (const key of [stranger, worker]) assert.equal((await rig.ask('GET', path, { key })).status, 403, path)
    assert.equal((await rig.ask('GET', path, { key: null })).status, 401)
  }
  assert.equal((await rig.ask('GET', '/v2/machine/diagnosis')).status, 409, 'there is nothing that could inspect it')
})
