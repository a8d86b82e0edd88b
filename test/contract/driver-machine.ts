/** A machine for the process driver: folders, scripts to run, and a socket to each process, open while it lives. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { enableCompileCache } from 'node:module'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EndpointId, WorkerId } from '../../src/core/ids.ts'
import { readBootId, readProcess } from '../../src/drivers/base/process-table.ts'
import { PORT_RANGE } from '../../src/drivers/base/served-ports.ts'
import { ProcessDriver, type ProcessDriverOptions } from '../../src/drivers/process/process.ts'
import { findMarker } from '../../src/drivers/process/process-marks.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'
import { createWorkerPipes } from '../../src/pump/worker-pipes.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createNotifier } from '../../src/system/coordination/notifier.ts'
import { createWorkerLogs } from '../../src/system/worker-logs/worker-logs.ts'
import { removeFolder } from '../support/remove-folder.ts'
import { PLAIN_WORKER } from '../support/worker-spec.ts'

/** Report of a process of a test about itself. */
export interface ProcessReport {
  /** `ready`, `asked`, `later`, `child`, `report`. */
  readonly event: string
  readonly worker: string
  readonly pid: number
  readonly env: Record<string, string>
  readonly words: string[]
  readonly folder: string
}

/**
 * The program that all workers of the tests run. It holds a connection for as long as it lives, so that its end can be
 * seen from outside without asking the driver, and it never outlives the test.
 */
const PROGRAM = `
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { connect } from 'node:net'
const behavior = process.argv[2] ?? 'obedient'
if (behavior === 'failing') process.exit(3)
if (behavior === 'crashing') process.kill(process.pid, 'SIGSEGV')
const line = connect(process.env.LIFELINE)
const tell = (event, more) =>
  line.write(JSON.stringify({ event, worker: process.env.RUNPOD_POD_ID ?? process.argv[3], pid: process.pid, ...more }) + '\\n')
line.on('error', () => {})
line.on('close', () => process.exit(9))
line.on('data', text => {
  if (String(text) === 'exit') process.exit(0)
  if (String(text) === 'serve') return createServer().listen(Number(process.env.PORT), '127.0.0.1')
  console.log(String(text))
})
process.on('SIGHUP', () => {})
process.on('SIGTERM', () => (['obedient', 'serving'].includes(behavior) ? process.exit(0) : tell('asked')))
// Of two signals that wait, the one with the lower number comes first.
process.on('SIGWINCH', () => tell('later'))
if (behavior === 'parent' || behavior === 'daemons') {
  const detached = behavior === 'daemons'
  spawn(process.execPath, [process.argv[1], 'child'], { stdio: 'ignore', detached })
}
if (behavior === 'runaway') {
  // Its parent exits at once, and it has another session and no variable of the worker; it still reports its worker.
  const { RUNPOD_POD_ID, LIFELINE } = process.env
  const words = ['-c', '(setsid env -i LIFELINE="$1" "$2" "$3" child "$4" & ) &', 'sh', LIFELINE, process.execPath]
  spawn('sh', [...words, process.argv[1], RUNPOD_POD_ID], { stdio: 'ignore', detached: true })
}
if (behavior === 'serving') {
  const { PORT, PORT_HEALTH } = process.env
  for (const [port, text] of [[PORT, 'traffic'], ...(PORT_HEALTH === PORT ? [] : [[PORT_HEALTH, 'health']])]) {
    const server = createServer((_request, response) => response.end(text))
    await new Promise(resolve => server.listen(Number(port), '127.0.0.1', resolve))
  }
}
if (behavior === 'child') tell('child')
else tell(process.argv.length > 3 || behavior === 'report' ? 'report' : 'ready', {
  env: process.env,
  words: process.argv.slice(2),
  folder: process.cwd(),
})
`

function markerHere() {
  const found = findMarker()
  return 'problem' in found ? null : found
}

/** A started process of a test, by its connection. */
export interface TestProcess {
  readonly report: ProcessReport
  /**
   * Makes the process print a line, or end itself when the line is `exit`, or listen at its PORT when it is `serve`.
   */
  say(line: string): void
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
}

// Each machine has a pump, which starts in half the time with it.
enableCompileCache()

/** Counts over all machines: a worker of an earlier test may need a moment to notice the end of its machine. */
let count = 0

/** A temporary machine. */
export type Machine = Awaited<ReturnType<typeof openMachine>>

/** Makes a machine with one process root, and in it the image `dir:app` with `worker.mjs`. */
export async function openMachine() {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'runyard-')))
  const root = join(folder, 'root')
  const hostHome = join(folder, 'host')
  await mkdir(join(root, 'app'), { recursive: true })
  await mkdir(hostHome)
  await mkdir(join(folder, 'caches'))
  await writeFile(join(root, 'app', 'worker.mjs'), PROGRAM)
  const line = await openLifeline(join(folder, 'line'))
  const notifier = createNotifier()
  const logs = createWorkerLogs({ folder: join(folder, 'logs'), clock: systemClock })
  const drivers: ProcessDriver[] = []
  const bootId = readBootId()
  const pipes = () =>
    createWorkerPipes({
      bootId,
      folder: join(folder, 'pump'),
      logs: join(folder, 'logs'),
      clock: systemClock,
      note: () => {},
    })
  const options: Omit<ProcessDriverOptions, 'pipes'> = {
    roots: [root],
    logs,
    clock: systemClock,
    notifier,
    workerDir: join(folder, 'workers'),
    caches: { folder: join(folder, 'caches'), limitGb: null },
    hostEnv: { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: hostHome },
    runtime: null,
    nodePath: process.execPath,
    workerPackage: null,
    maxWorkers: 8,
    cage: null,
    findGroups: () => null,
    volumeLink: {
      path: join(folder, 'runpod-volume'),
      root: join(folder, 'volumes'),
      models: join(folder, 'models', 'volume'),
    },
    bootId,
    marker: markerHere(),
    // Test files run at the same time.
    firstPort: PORT_RANGE.first + ((process.pid * 97) % (PORT_RANGE.last - PORT_RANGE.first)),
  }
  return {
    folder,
    root,
    hostHome,
    notifier,
    logs,
    options,
    life: line.life,
    /** Number of stop signals to a worker, after the first arrived. */
    async asked(worker: WorkerId): Promise<number> {
      const { pid } = (await line.life(worker, 'asked')).report
      const before = line.count(worker, 'later')
      process.kill(pid, 'SIGWINCH')
      await line.life(worker, 'later', before)
      return line.count(worker, 'asked')
    },
    /** True if all processes of a worker that sent a report are stopped. */
    frozen(worker: WorkerId): boolean {
      return line.pids(worker).every(pid => readProcess(pid)?.stopped === true)
    },
    /** Waits until all processes of a worker that sent a report respond to a signal that is sent now. */
    async responds(worker: WorkerId): Promise<void> {
      const pids = line.pids(worker)
      const before = line.count(worker, 'later')
      for (const pid of pids) process.kill(pid, 'SIGWINCH')
      await line.life(worker, 'later', before + pids.length - 1)
    },
    /** A driver over this machine, as a server makes one when it starts. */
    driver(changes: Partial<ProcessDriverOptions> = {}): ProcessDriver {
      const driver = new ProcessDriver({ ...options, pipes: pipes(), ...changes })
      drivers.push(driver)
      return driver
    },
    /** A new worker that runs the program of the tests with these words. */
    spec(words: string, changes: Partial<WorkerSpec> = {}): WorkerSpec {
      const workerId = `worker-${process.pid}-${count++}` as WorkerId
      return {
        ...PLAIN_WORKER,
        workerId,
        endpointId: 'endpoint' as EndpointId,
        image: 'dir:app',
        args: `'${process.execPath}' worker.mjs ${words}`,
        protocolEnv: { LIFELINE: join(folder, 'line'), RUNPOD_POD_ID: workerId },
        ...changes,
      }
    },
    async close(): Promise<void> {
      for (const driver of drivers) driver.close()
      await line.close()
      // The folders of models are for reading alone.
      await rm(folder, { recursive: true, force: true, maxRetries: 10 }).catch(() => removeFolder(folder))
    },
  }
}

async function openLifeline(path: string) {
  const lives: TestProcess[] = []
  const sockets = new Set<Socket>()
  let wake = Promise.withResolvers<void>()
  const told = (worker: WorkerId, event: string) =>
    lives.filter(life => life.report.worker === worker && life.report.event === event)
  const server: Server = createServer(socket => {
    const ended = Promise.withResolvers<void>()
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => {
      sockets.delete(socket)
      ended.resolve()
    })
    let text = ''
    socket.on('data', block => {
      text += block.toString()
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const told of lines.map(line => JSON.parse(line) as ProcessReport)) {
        lives.push({ report: told, say: said => socket.write(said), ended: ended.promise })
      }
      wake.resolve()
      wake = Promise.withResolvers()
    })
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  return {
    /** Waits for a report of the event by a process of the worker, after `before` earlier ones. */
    async life(worker: WorkerId, event = 'ready', before = 0): Promise<TestProcess> {
      for (;;) {
        const found = told(worker, event)[before]
        if (found !== undefined) return found
        await wake.promise
      }
    },
    /** Processes of a worker that sent a report. */
    pids: (worker: WorkerId) => [
      ...new Set(lives.filter(({ report }) => report.worker === worker).map(({ report }) => report.pid)),
    ],
    /** Number of reports of the event by the worker's processes. */
    count: (worker: WorkerId, event: string) => told(worker, event).length,
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
