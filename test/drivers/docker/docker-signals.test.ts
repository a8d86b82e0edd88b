/**
 * A container that should end gets one signal, however often the engine is read, and as soon
 * as the engine can send it.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import { LABELS } from '../../../src/drivers/docker/container-spec.ts'
import { DockerDriver } from '../../../src/drivers/docker/docker.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { systemClock } from '../../../src/system/clock.ts'
import { createNotifier } from '../../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../../src/system/worker-logs/worker-logs.ts'
import { patient } from '../../support/patience.ts'
import { type PlayedAnswer, playEngine } from '../../support/played-engine.ts'

const worker = 'w' as WorkerId
/** The pause of 10 s takes 20 ms; all deadlines stay as they are. */
const clock = {
  ...systemClock,
  after: (ms: number, callback: () => void) => systemClock.after(ms === 10_000 ? 20 : ms, callback),
}
const HANDLE = '{"container":"c","process":null}'

/**
 * A driver on an engine with one container that no signal ends.
 * @param fails number of signals that the engine refuses first
 */
async function openPlayed(context: TestContext, fails = 0) {
  const labels = { [LABELS.worker]: worker, [LABELS.installation]: 'i' }
  const sent: string[] = []
  let refusals = fails
  let lists = 0
  const json = (value: unknown) => JSON.stringify(value)
  const answers = new Map<string, PlayedAnswer>([
    [
      '/containers/json',
      response => {
        lists += 1
        response.end(json([{ Id: 'c', State: 'running', Labels: labels }]))
      },
    ],
    [
      '/containers/c/json',
      response => void response.end(json({ Id: 'c', State: { Running: true }, Config: { Labels: labels } })),
    ],
    [
      '/containers/c/kill',
      (response, { url = '' }) => {
        refusals -= 1
        if (refusals < 0) sent.push(new URL(url, 'http://engine').searchParams.get('signal') ?? '')
        response.writeHead(refusals < 0 ? 204 : 500).end()
      },
    ],
  ])
  const played = await playEngine(context, { answers })
  const driver = new DockerDriver({
    clock,
    installation: 'i',
    stateDir: played.folder,
    runtime: played.folder,
    maxWorkers: 1,
    bootId: '',
    addresses: () => engineAddresses(played.url, {}),
    notifier: createNotifier(),
    note: () => {},
    logs: createWorkerLogs({ folder: `${played.folder}/logs`, clock }),
    connection: async () => ({ name: 'runyard', extraHosts: [], serving: 'direct' }),
  })
  context.after(() => driver.close())
  assert.equal(await driver.check('image', ''), null)
  assert.equal(await driver.adopt(worker, HANDLE), true)
  /** The driver has compared what should run with what does so often from now on. */
  const compared = async (times: number) => {
    const until = lists + times
    while (lists < until) await new Promise<void>(resolve => clock.after(10, resolve))
  }
  return { driver, sent, compared }
}

test('it gets one SIGTERM, and SIGKILL after that', { timeout: patient(20_000) }, async context => {
  const { driver, sent, compared } = await openPlayed(context)
  await driver.terminate(worker)
  await compared(3)
  await driver.terminate(worker)
  assert.deepEqual(sent, ['SIGTERM'])
  await driver.kill(worker)
  assert.deepEqual(sent.slice(0, 2), ['SIGTERM', 'SIGKILL'])
})

test('a signal that the engine refused is sent again later', { timeout: patient(20_000) }, async context => {
  const { driver, sent, compared } = await openPlayed(context, 2)
  await driver.terminate(worker)
  assert.deepEqual(sent, [])
  while (sent.length === 0) await compared(1)
  assert.deepEqual(sent, ['SIGTERM'])
})
