/** The order of test files, and the lanes that run at the same time. */
import { containerFiles, everyRunFiles } from '../../test/wire/support/container-suite.ts'
import type { Arguments } from './arguments.ts'

/** One run of a file, or of several that share a process. */
export interface Task {
  readonly file: string
  /** The files that run after it in the same process. */
  readonly others: readonly string[]
  /** Its tests with workers in containers that run: none, those of every full run, or all. */
  readonly containers: 'none' | 'main' | 'all'
}

/**
 * The slowest files, the slowest first: the last file to start decides when the run ends. Those that mostly wait, less
 * than a third of their time with a processor, have their own lane.
 */
const WAITING = [
  'faults/worker-faults',
  'faults/postgres-servers',
  'faults/takeovers',
  'clients/batch',
  'clients/python-surface',
  'workers/gpu-story',
  'faults/relay-hang',
  'faults/systemd',
  'attacks/revoked-keys',
  'faults/floods-slow',
  'clients/job-operations',
  'attacks/from-inside-process',
  'clients/transcript',
  'faults/relay',
  'clients/webhooks',
  'attacks/webhook-targets',
  'faults/relay-process',
  'attacks/body-that-kills-the-server',
].map(wireFile)
const SLOW = [
  ...[
    'clients/schemathesis',
    'workers/deployed-apps',
    'faults/floods',
    'faults/restart',
    'faults/outage',
    'docs/pages',
    'faults/torture',
    'clients/old-sdks',
    'faults/postgres-trouble',
    'clients/cli',
    'clients/streams',
    'faults/floods-connections',
    'workers/worker-calls',
    'faults/postgres',
    'clients/https',
    'clients/openai',
    'first-hour/folder',
    'faults/upgrade',
    'faults/backup',
    'workers/python-worker',
    'workers/node-worker',
    'attacks/large-bodies',
    'workers/slow-reader',
  ].map(wireFile),
  ...['simulator', 'mutants', 'regressions', 'pairs', 'clusters', 'request-queue-mutants'].map(
    name => `test/sim/${name}.test.ts`,
  ),
  'test/model/lifecycle.test.ts',
  'test/contract/store.test.ts',
  'test/scripts/release.test.ts',
  'test/app/scaling/steady-load.test.ts',
]
const ORDER = [...WAITING, ...SLOW]

/** Tests that start and stop a container engine: no other test may use containers at that time. */
const stopsEngine = (file: string) => /^test\/(?:wire\/docker\/|drivers\/docker\/|contract\/driver-docker)/.test(file)
/** Others that use an engine, and so wait until those have ended. */
const usesEngine = (file: string) =>
  ['attacks/from-inside-container', 'first-hour/team', 'workers/worker-models'].map(wireFile).includes(file)
/** Tests that measure throughput: only one at a time. */
const isGateway = (file: string) => /^test\/wire\/gateway\//.test(file)
const isWaiting = (file: string) => WAITING.includes(file)
/** Tests with a browser, which uses a processor for itself: only one at a time. */
const isBrowser = (file: string) => /^test\/browser\//.test(file)
/** Tests with a real Kubernetes, most of whose time is waiting: only one at a time. */
const isKubernetes = (file: string) => /^test\/(?:wire\/kubernetes\/|contract\/driver-kubernetes)/.test(file)
/** Those whose pods are all that they change of a cluster: they share a process, and with it one cluster. */
const sharesCluster = (file: string) =>
  ['contract/driver-kubernetes', 'wire/kubernetes/kubernetes-faults', 'wire/kubernetes/kubernetes']
    .map(name => `test/${name}.test.ts`)
    .includes(file)
const isWire = (file: string) =>
  isOverSockets(file) && ![stopsEngine, usesEngine, isGateway, isWaiting, isBrowser, isKubernetes].some(is => is(file))

/** True for a file that starts real servers. */
export function isOverSockets(file: string): boolean {
  return /^test\/(?:wire|browser)\//.test(file)
}

/**
 * True for a file whose tests depend neither on time nor on the machine. A failure there is a fault, perhaps with a
 * random seed that does not recur, so that a second run would prove nothing.
 */
export function isPure(file: string): boolean {
  return /^test\/(?:app|cli|config|console|core|model|sim|tidy)\//.test(file)
}

/**
 * Tests that open no socket, start no server and change no global state, so that several of them share a process;
 * and those that share a cluster. Each process needs more than a second to load the application.
 */
const sharesProcess = (file: string) =>
  sharesCluster(file) || (/^test\/(?:app|core|relay|gateway|cli|config|tidy)\//.test(file) && !ORDER.includes(file))
/** Maximum number of files that share a process: its heap grows with them, and lanes should end together. */
const MAX_BATCH = 8

type Started = 'engine' | 'gateway' | 'browser' | 'waiting' | 'waitingContainers' | 'kubernetes' | 'wire' | 'containers'
/** The tasks of a run by kind. Lanes take them from the front. */
export type Queues = Record<Started | 'rest' | 'pure', Task[]>

/** Files that run one after another, while those of other lanes run. */
export interface Lane {
  readonly queues: readonly (keyof Queues)[]
  /** True if its files get the processor time that the other lanes leave. */
  readonly isLow?: boolean
  /** True if it takes no more files once the other lanes have begun. */
  readonly endsWhenReady?: boolean
  /** True if it takes a file only while the other lanes leave most of a processor. */
  readonly needsProcessor?: boolean
}

/**
 * The lanes of a run. Wire tests wait about as long as they compute, so three lanes keep two processors nearly busy
 * beside the lane of those that mostly wait; another lane takes files while that is not so. Pure tests, which only
 * compute, take the rest, and begin while the programs of the others are installed. After them come those without a
 * server of ours, so that the gaps are filled until the end. Each lane goes on with the files of others, so that all
 * end together.
 */
export const LANES: readonly Lane[] = [
  { queues: ['engine', 'gateway', 'containers', 'wire', 'rest', 'pure'] },
  { queues: ['browser', 'wire', 'containers', 'rest', 'pure'] },
  { queues: ['wire', 'containers', 'rest', 'pure'] },
  { queues: ['waiting', 'waitingContainers', 'kubernetes', 'wire', 'containers', 'rest', 'pure'] },
  { queues: ['waiting', 'wire', 'rest'], needsProcessor: true },
  { queues: ['pure', 'rest'], isLow: true },
  { queues: ['pure'], isLow: true, endsWhenReady: true },
]

/** The tasks of a run, and the reason to skip tests with workers in containers; null if they run. */
export function planTasks({ files, isWhole, onlyContainers, list }: Arguments): {
  queues: Queues
  skipped: string | null
} {
  const tasksOf = (is: (file: string) => boolean) =>
    onlyContainers
      ? []
      : slowestFirst(files.filter(is)).map(file => ({ file, others: [], containers: 'none' as const }))
  const wanted = onlyContainers || isWhole
  const hasEngine = process.env.RUNYARD_TEST_DOCKER !== undefined
  const [paths, containers] = isWhole ? ([everyRunFiles, 'main'] as const) : ([containerFiles, 'all'] as const)
  const again = wanted && hasEngine ? slowestFirst(files.filter(file => paths.includes(file))) : []
  const inContainers = again.map(file => ({ file, others: [], containers }))
  const isRest = (file: string) =>
    ![stopsEngine, usesEngine, isGateway, isBrowser, isWaiting, isKubernetes, isWire, isPure].some(is => is(file))
  const batches = (tasks: Task[]) => (list ? tasks : inBatches(tasks))
  return {
    queues: {
      engine: tasksOf(stopsEngine),
      gateway: tasksOf(isGateway),
      browser: tasksOf(isBrowser),
      waiting: tasksOf(isWaiting),
      waitingContainers: inContainers.filter(({ file }) => isWaiting(file)),
      kubernetes: batches(tasksOf(isKubernetes)),
      wire: tasksOf(isWire),
      containers: [...tasksOf(usesEngine), ...inContainers.filter(({ file }) => !isWaiting(file))],
      rest: batches(tasksOf(isRest)),
      pure: batches(tasksOf(isPure)),
    },
    skipped: wanted && !hasEngine ? 'tests with workers in containers: RUNYARD_TEST_DOCKER names no engine' : null,
  }
}

/** The same tasks, grouped where they share a process, in the order of the first of each group. */
function inBatches(tasks: readonly Task[]): Task[] {
  const alone = tasks.filter(({ file }) => !sharesProcess(file))
  const shared = tasks.filter(({ file }) => sharesProcess(file)).map(({ file }) => file)
  const batches = Array.from({ length: Math.ceil(shared.length / MAX_BATCH) }, (_, at) =>
    shared.slice(at * MAX_BATCH, (at + 1) * MAX_BATCH),
  )
  return [
    ...alone,
    ...batches.map(([file, ...otherFiles]) => ({ file: file!, others: otherFiles, containers: 'none' as const })),
  ]
}

function slowestFirst(files: readonly string[]): string[] {
  const rank = (file: string) => (ORDER.includes(file) ? ORDER.indexOf(file) : ORDER.length)
  return files.toSorted((a, b) => rank(a) - rank(b))
}

function wireFile(name: string): string {
  return `test/wire/${name}.test.ts`
}
