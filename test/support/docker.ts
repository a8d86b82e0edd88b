/** The container engine of the tests, at the address in `RUNYARD_TEST_DOCKER`; see `.ci/docker`. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { runtimePackageFolder } from '../../src/disk/package-files.ts'
import { readBootId } from '../../src/drivers/base/process-table.ts'
import { containerName } from '../../src/drivers/docker/container-spec.ts'
import { DockerDriver, type DockerDriverOptions } from '../../src/drivers/docker/docker.ts'
import { engineAddresses } from '../../src/drivers/docker/engine/engine-address.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../src/system/worker-logs/worker-logs.ts'
import { TestEngine } from './engine.ts'
import { PLAIN_WORKER } from './worker-spec.ts'

/** Address of the engine of the tests; empty without one. */
export const engineUrl = process.env.RUNYARD_TEST_DOCKER ?? ''

/** An image with Python, RunPod's SDK, Node and `@runyard/worker`, which the engine has. */
export const workerImage = process.env.RUNYARD_TEST_DOCKER_IMAGE ?? ''

/** Reason why tests with containers cannot run; false if they can. */
export const noDocker: string | false =
  engineUrl === '' || workerImage === ''
    ? 'set RUNYARD_TEST_DOCKER and RUNYARD_TEST_DOCKER_IMAGE to run the tests with containers; .ci/docker makes both'
    : false

/**
 * Reason why tests of features that Podman lacks cannot run; false if the engine is not Podman, by the name of its
 * socket.
 */
export const onPodman: string | false = /podman/.test(engineUrl) ? 'Podman does not do this' : false

/** An engine, independent of the driver. */
export function engineAt(url: string): TestEngine {
  return new TestEngine(url)
}

/** An installation on an engine. Each start of its server creates a driver. */
export type DockerMachine = Awaited<ReturnType<typeof openDockerMachine>>

let count = 0

/** Creates an installation on the engine of the tests, or on another. */
export async function openDockerMachine(url = engineUrl) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-docker-'))
  const installation = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  const notifier = createNotifier()
  const logs = createWorkerLogs({ folder: join(folder, 'logs'), clock: systemClock })
  const engine = engineAt(url)
  const drivers: DockerDriver[] = []
  const notes: string[] = []
  const options: DockerDriverOptions = {
    clock: systemClock,
    notifier,
    logs,
    installation,
    stateDir: folder,
    runtime: runtimePackageFolder(),
    maxWorkers: 8,
    bootId: readBootId(),
    addresses: () => engineAddresses(url, {}),
    note: what => notes.push(what),
    connection: async () => ({ name: 'bridge', extraHosts: [], serving: 'direct' }),
  }
  const ownContainers = () =>
    engine.listContainers({ all: true, filters: { label: [`dev.runyard.installation=${installation}`] } })
  return {
    folder,
    notifier,
    logs,
    engine,
    notes,
    installation,
    own: ownContainers,
    /** Creates a driver, like a server that starts. */
    driver(changes: Partial<DockerDriverOptions> = {}): DockerDriver {
      const driver = new DockerDriver({ ...options, ...changes })
      drivers.push(driver)
      return driver
    },
    /** The spec of a new worker that runs a command. */
    spec(words: readonly string[], changes: Partial<WorkerSpec> = {}): WorkerSpec {
      count += 1
      const workerId = `w${process.pid}x${count}` as WorkerId
      return {
        ...PLAIN_WORKER,
        workerId,
        endpointId: 'endpoint' as EndpointId,
        image: workerImage,
        args: JSON.stringify({ cmd: words }),
        protocolEnv: { RUNPOD_POD_ID: workerId },
        ...changes,
      }
    },
    /** The current content of the worker's log. */
    async output(worker: WorkerId): Promise<string[]> {
      return (await logs.tail(worker, 10_000)).map(({ line }) => line)
    },
    /** Waits until the worker has written a line, `times` times. */
    async said(worker: WorkerId, wanted: string, times = 1): Promise<void> {
      while ((await this.count(worker, wanted)) < times) {
        await new Promise<void>(resolve => systemClock.after(20, resolve))
      }
    },
    /** Number of times that the worker wrote a line. */
    async count(worker: WorkerId, wanted: string): Promise<number> {
      return (await this.output(worker)).filter(line => line === wanted).length
    },
    /**
     * Number of SIGTERMs that a worker got, once it got one. The worker writes `asked` then, and `later` on SIGWINCH.
     */
    async asked(worker: WorkerId): Promise<number> {
      await this.said(worker, 'asked')
      const count = await this.count(worker, 'later')
      // Of two pending signals, the one with the lower number is delivered first.
      await engine.getContainer(containerName(worker)).kill({ signal: 'SIGWINCH' })
      await this.said(worker, 'later', count + 1)
      return this.count(worker, 'asked')
    },
    /** True if the engine paused a worker. */
    async frozen(worker: WorkerId): Promise<boolean> {
      return (await engine.getContainer(containerName(worker)).inspect()).State.Paused
    },
    /** Waits until a worker that writes `later` on SIGWINCH has done so for one that is sent now. */
    async responds(worker: WorkerId): Promise<void> {
      const count = await this.count(worker, 'later')
      await engine.getContainer(containerName(worker)).kill({ signal: 'SIGWINCH' })
      await this.said(worker, 'later', count + 1)
    },
    async close(): Promise<void> {
      await Promise.all(drivers.map(driver => driver.close()))
      for (const { Id } of await ownContainers())
        await engine
          .getContainer(Id)
          .remove({ force: true, v: true })
          .catch(() => {})
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
