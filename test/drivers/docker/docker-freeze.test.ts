/** Frozen containers on engines that differ in what they do with paused ones. */
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
const HANDLE = '{"container":"c","process":null}'
/**
 * Lists the containers each half second. Calls have as long to get a response, which is enough on a busy machine too.
 */
const clock = {
  ...systemClock,
  after: (ms: number, callback: () => void) => systemClock.after(ms === 10_000 ? 500 : ms, callback),
}

/** Behavior of an engine with a paused container. */
interface Custom {
  /** True if the container counts as running. */
  readonly runs: boolean
  /** True if it accepts signals for the container. */
  readonly takesSignals: boolean
}

const DOCKER: Custom = { runs: true, takesSignals: true }
const PODMAN: Custom = { runs: false, takesSignals: false }

async function openPlayed(context: TestContext, { runs, takesSignals }: Custom) {
  const labels = { [LABELS.worker]: worker, [LABELS.installation]: 'i' }
  const container = { paused: false }
  /** Calls in order, done and refused. */
  const done: string[] = []
  const refusing = new Set<string>()
  const end = (response: Parameters<PlayedAnswer>[0], what: string, isPossible: boolean) => {
    const taken = isPossible && !refusing.has(what)
    done.push(taken ? what : `no ${what}`)
    response.writeHead(taken ? 204 : 409).end()
    return taken
  }
  const answers = new Map<string, PlayedAnswer>([
    [
      '/containers/json',
      response => {
        const State = container.paused ? 'paused' : 'running'
        response.end(JSON.stringify([{ Id: 'c', State, Labels: labels }]))
      },
    ],
    [
      '/containers/c/json',
      response => {
        const State = { Running: runs || !container.paused, Paused: container.paused }
        response.end(JSON.stringify({ Id: 'c', State, Config: { Labels: labels } }))
      },
    ],
    [
      '/containers/c/pause',
      response => {
        if (end(response, 'pause', !container.paused)) container.paused = true
      },
    ],
    [
      '/containers/c/unpause',
      response => {
        if (end(response, 'unpause', container.paused)) container.paused = false
      },
    ],
    [
      '/containers/c/kill',
      (response, { url = '' }) => {
        const signal = new URL(url, 'http://engine').searchParams.get('signal') ?? ''
        end(response, signal, takesSignals || !container.paused)
      },
    ],
  ])
  const played = await playEngine(context, { answers })
  const open = async () => {
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
    return driver
  }
  return { ...played, container, done, refusing, driver: await open(), open }
}

for (const [name, custom] of Object.entries({ DOCKER, PODMAN })) {
  test(`a container is frozen and thawed by an engine like ${name}, and adopted`, {
    timeout: patient(20_000),
  }, async context => {
    const { driver, done, open } = await openPlayed(context, custom)
    await driver.freeze(worker)
    await driver.freeze(worker)
    assert.deepEqual(await driver.observe(worker), { state: 'running' })
    await driver.thaw(worker)
    await driver.thaw(worker)
    await driver.freeze(worker)
    assert.deepEqual(done, ['pause', 'unpause', 'pause'])
    const next = await open()
    assert.deepEqual(await next.observe(worker), { state: 'running' })
    await next.freeze(worker)
    await next.thaw(worker)
    assert.deepEqual(done.slice(3), ['unpause'])
  })
}

test('a frozen container gets SIGTERM before it goes on', { timeout: patient(20_000) }, async context => {
  const { driver, done } = await openPlayed(context, DOCKER)
  await driver.freeze(worker)
  await driver.terminate(worker)
  assert.deepEqual(done, ['pause', 'SIGTERM', 'unpause'])
  await driver.freeze(worker)
  assert.deepEqual(done, ['pause', 'SIGTERM', 'unpause'], 'one that was asked to end is not frozen')
})

test('where the engine takes no signal for a paused container, it goes on first', {
  timeout: patient(20_000),
}, async context => {
  const { driver, done, container } = await openPlayed(context, PODMAN)
  await driver.freeze(worker)
  await driver.terminate(worker)
  assert.deepEqual(done, ['pause', 'no SIGTERM', 'unpause', 'SIGTERM'])
  container.paused = true
  await driver.kill(worker)
  assert.deepEqual(done.slice(4), ['no SIGKILL', 'unpause', 'SIGKILL'])
})

test('a container that the engine cannot pause runs on, and the call says why', {
  timeout: patient(20_000),
}, async context => {
  const { driver, refusing, container, paths } = await openPlayed(context, DOCKER)
  refusing.add('pause')
  await assert.rejects(driver.freeze(worker), { code: 'unavailable', message: /the container cannot be frozen now/ })
  refusing.clear()
  const lists = () => paths.filter(path => path.endsWith('/containers/json')).length
  const before = lists()
  while (lists() < before + 2) await new Promise<void>(resolve => systemClock.after(10, resolve))
  assert.equal(container.paused, false)
})

test('a container that the engine could not thaw is thawed when the engine can', {
  timeout: patient(20_000),
}, async context => {
  const { driver, refusing, container } = await openPlayed(context, DOCKER)
  await driver.freeze(worker)
  refusing.add('unpause')
  await assert.rejects(driver.thaw(worker), { code: 'unavailable', message: /cannot be thawed now/ })
  refusing.clear()
  while (container.paused) await new Promise<void>(resolve => systemClock.after(10, resolve))
})

test('what an engine has lost of its pauses is frozen again when it is back', {
  timeout: patient(20_000),
}, async context => {
  const { driver, container, hangUp, listen } = await openPlayed(context, DOCKER)
  await driver.freeze(worker)
  await hangUp()
  container.paused = false
  await listen()
  while (!container.paused) await new Promise<void>(resolve => systemClock.after(10, resolve))
  assert.deepEqual(await driver.observe(worker), { state: 'running' })
})
