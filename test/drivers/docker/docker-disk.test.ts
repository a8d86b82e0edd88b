/** Limit of the disk of a container: set in the engine if it has one, else checked by polling. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { EndpointId, WorkerId } from '../../../src/core/ids.ts'
import { observedExitText } from '../../../src/core/workers/worker-exit.ts'
import { LABELS } from '../../../src/drivers/docker/container-spec.ts'
import { diskFault } from '../../../src/drivers/docker/disk-watch.ts'
import { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../../src/system/worker-logs/worker-logs.ts'
import { nextExit } from '../../contract/driver.ts'
import { noDocker, openDockerMachine } from '../../support/docker.ts'
import { patient } from '../../support/patience.ts'
import { fastClock, type PlayedAnswer, playEngine } from '../../support/played-engine.ts'
import { PLAIN_WORKER } from '../../support/worker-spec.ts'

const MINUTE_MS = 60_000

test('a container has done something wrong when it has written more than its disk has', () => {
  assert.equal(diskFault(0, 1), null)
  assert.equal(diskFault(5_000_000_000, 5), null)
  assert.deepEqual(diskFault(5_000_000_001, 5), { kind: 'disk_full', limitGb: 5, of: 'container' })
})

describe('a container on an engine that is there', { skip: noDocker, timeout: patient(60_000) }, () => {
  test('is ended when it writes more than its limit, with that reason, and other containers are not', async () => {
    const machine = await openDockerMachine()
    try {
      // The test lets minutes pass: after the starts, whose deadlines are as long, only the watch waits for one.
      const minutes = new Set<() => void>()
      const after = (ms: number, callback: () => void) => {
        if (ms !== MINUTE_MS) return systemClock.after(ms, callback)
        minutes.add(callback)
        return () => minutes.delete(callback)
      }
      const clock = { ...systemClock, after }
      const driver = machine.driver({ clock })
      const words = (mb: number) => ['sh', '-c', `head -c ${mb * 1_000_000} /dev/zero > /file; sleep 60`]
      const [greedy, modest] = [words(20), words(5)].map(list => machine.spec(list, { diskGb: 0.01 })) as [
        ReturnType<typeof machine.spec>,
        ReturnType<typeof machine.spec>,
      ]
      await Promise.all([driver.start(greedy), driver.start(modest)])
      while ((await driver.observe(greedy.workerId)).state === 'running') {
        for (const minute of minutes) {
          minutes.delete(minute)
          minute()
        }
        await new Promise<void>(resolve => systemClock.after(100, resolve))
      }
      const exit = await nextExit(machine.notifier, driver, greedy.workerId)
      const bound = (await machine.engine.getContainer(`runyard-${greedy.workerId}`).inspect()).HostConfig.StorageOpt
      if (bound === undefined || bound === null) {
        assert.equal(observedExitText(exit), 'was killed because it wrote more than the 0.01 GB of its container disk')
        assert.equal(exit.signal, 'SIGKILL')
      }
      assert.deepEqual(await driver.observe(modest.workerId), { state: 'running' })
      await driver.kill(modest.workerId)
    } finally {
      await machine.close()
    }
  })
})

/** A driver on an engine that has one container, `c`, of the worker `w`. */
async function openPlayed(context: TestContext, written: () => number) {
  const labels = { [LABELS.worker]: 'w', [LABELS.installation]: 'i', [LABELS.diskGb]: '2' }
  const json = (value: unknown) => (response: ServerResponse) => void response.end(JSON.stringify(value))
  const killed: string[] = []
  let running = true
  const answers = new Map<string, PlayedAnswer>([
    ['/containers/json', response => json(running ? [{ Id: 'c', State: 'running', Labels: labels }] : [])(response)],
    [
      '/containers/c/json',
      (response, { url = '' }) => {
        const size = url.includes('size=true') ? { SizeRw: written() } : {}
        json({ Id: 'c', State: { Running: running, ExitCode: 137 }, Config: { Labels: labels }, ...size })(response)
      },
    ],
    [
      '/containers/c/kill',
      (response, { url = '' }) => {
        killed.push(new URL(url, 'http://engine').searchParams.get('signal') ?? '')
        running = false
        response.writeHead(204).end()
        const event = { Action: 'die', Actor: { ID: 'c', Attributes: { exitCode: '137' } } }
        played.events.at(-1)?.write(`${JSON.stringify(event)}\n`)
      },
    ],
  ])
  const played = await playEngine(context, { answers })
  const notifier = createNotifier()
  const driver = new DockerDriver({
    clock: fastClock,
    installation: 'i',
    stateDir: played.folder,
    runtime: played.folder,
    maxWorkers: 1,
    bootId: '',
    addresses: () => engineAddresses(played.url, {}),
    notifier,
    note: () => {},
    logs: createWorkerLogs({ folder: join(played.folder, 'logs'), clock: fastClock }),
    connection: async () => ({ name: 'runyard', extraHosts: [], serving: 'direct' }),
  })
  context.after(() => driver.close())
  return { ...played, answers, driver, notifier, killed }
}

const worker = 'w' as WorkerId
const HANDLE = '{"container":"c","process":null}'

test('the disk of a container of an earlier run is watched too', { timeout: patient(20_000) }, async context => {
  const { driver, notifier, killed } = await openPlayed(context, () => 2_000_000_001)
  assert.equal(await driver.adopt(worker, HANDLE), true)
  const exit = await nextExit(notifier, driver, worker)
  assert.equal(observedExitText(exit), 'was killed because it wrote more than the 2 GB of its container disk')
  assert.deepEqual(killed, ['SIGKILL'])
})

test('so is that of one that was taken over while the engine was away', { timeout: patient(20_000) }, async context => {
  const { driver, notifier, hangUp, listen } = await openPlayed(context, () => 3_000_000_000)
  await driver.check('image', '')
  await hangUp()
  while ((await driver.check('image', '')) === null) await new Promise<void>(resolve => fastClock.after(500, resolve))
  assert.equal(await driver.adopt(worker, HANDLE), true)
  await listen()
  assert.match(observedExitText(await nextExit(notifier, driver, worker)), /wrote more than the 2 GB/)
})

test('an engine that does not report disk use ends no container', { timeout: patient(20_000) }, async context => {
  let asked = 0
  const { driver, killed } = await openPlayed(context, () => {
    asked += 1
    return asked % 2 === 1 ? Number.NaN : 1_999_999_999
  })
  await driver.adopt(worker, HANDLE)
  while (asked < 4) await new Promise<void>(resolve => fastClock.after(5_000, resolve))
  assert.deepEqual(killed, [])
})

test('the engine bounds the disk of a container where it can, and gets a call without the bound where it cannot', {
  timeout: patient(20_000),
}, async context => {
  const { driver, answers } = await openPlayed(context, () => 0)
  const bodies: { HostConfig: { StorageOpt?: unknown }; Labels: Record<string, string> }[] = []
  let bounds = true
  answers.set('/containers/create', (response, request) => {
    let text = ''
    request.on('data', piece => {
      text += piece
    })
    request.on('end', () => {
      bodies.push(JSON.parse(text))
      if (bodies.at(-1)?.HostConfig.StorageOpt === undefined || bounds) return response.writeHead(201).end('{"Id":"c"}')
      const message = '--storage-opt is supported only for overlay over xfs with pquota mount option'
      response.writeHead(500).end(JSON.stringify({ message }))
    })
  })
  const start = async (id: string) => {
    bodies.length = 0
    const spec = {
      ...PLAIN_WORKER,
      workerId: id as WorkerId,
      endpointId: 'e' as EndpointId,
      image: 'image:1',
      args: '',
      diskGb: 7,
    }
    await driver.start(spec)
    return bodies.map(({ HostConfig, Labels }) => [HostConfig.StorageOpt ?? null, Labels[LABELS.diskGb] ?? null])
  }
  assert.deepEqual(await start('a'), [[{ size: '7G' }, null]])
  bounds = false
  assert.deepEqual(await start('b'), [
    [{ size: '7G' }, null],
    [null, '7'],
  ])
  assert.deepEqual(await start('d'), [[null, '7']], 'it is not asked again')
})
