import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../../../src/core/errors.ts'
import { explainEndpoint } from '../../../src/core/observing/explain.ts'
import {
  type StartFailure,
  startFailureFromError,
  startFailureText,
  startRemedy,
  WorkerStartError,
} from '../../../src/core/workers/start-failure.ts'
import type { ObservedExit } from '../../../src/core/workers/worker-exit.ts'
import { findCrashCause, remedyForExit } from '../../../src/core/workers/worker-failure.ts'
import { anExit, aSnapshot, NOW } from '../../support/snapshots.ts'

type Kind = StartFailure['kind']
type Samples = {
  readonly [K in Kind]: readonly [failure: Omit<Extract<StartFailure, { kind: K }>, 'kind'>, text: string]
}

/** A failure of each kind, and its message for people. */
const SAMPLES: Samples = {
  template_missing: [{ template: 't1' }, 'its template t1 does not exist'],
  secrets_missing: [{ names: ['A', 'B'] }, 'the environment refers to secrets that do not exist: A, B'],
  volume_missing: [{ volume: 'v1' }, 'its network volume v1 does not exist'],
  settings_invalid: [{ problem: 'the variable PORT must be a port' }, 'the variable PORT must be a port'],
  cluster_away: [{ said: 'nobody listens' }, 'the cluster does not respond: nobody listens'],
  cluster_refused: [{ said: 'pods is forbidden' }, 'the cluster refuses it: pods is forbidden'],
  cluster_name_taken: [
    { name: 'runyard-a' },
    'the cluster has an object runyard-a already, which is not of this installation',
  ],
  cluster_volume_missing: [
    {},
    'its network volume cannot be mounted: the server was started without --kubernetes-volume-claim',
  ],
  cluster_elsewhere: [
    {},
    'a worker of a load-balancing endpoint cannot be started: this server is outside of the cluster, and does not reach the addresses of its pods',
  ],
  model_failed: [
    { model: 'org/tiny', problem: { kind: 'not_found', revision: 'v9' } },
    "model org/tiny is not available: the hub has no such model, or no revision 'v9' of it",
  ],
  model_gone: [{ model: 'org/tiny' }, 'model org/tiny was removed before a worker could get it'],
  args_invalid: [{ problem: 'args is odd' }, 'args is odd'],
  image_invalid: [{ image: 'A' }, "'A' is not a reference of a container image"],
  folder_reserved: [
    {},
    "processes of this machine (images dir:..., and apps without containers) are run only for the operator's account; use the image of a container",
  ],
  python_missing: [
    { python: '3.14', found: ['3.10', '3.11'] },
    'the app needs Python 3.14, which this machine lacks; it has 3.10, 3.11',
  ],
  sdk_not_installed: [
    { python: '3.11', said: 'no route to host' },
    "RunPod's SDK could not be installed for Python 3.11: no route to host",
  ],
  containers_off: [{}, 'containers are off (--docker off)'],
  processes_off: [{}, 'processes are off (--processes off)'],
  workers_off: [{ problem: 'containers are off' }, 'containers are off'],
  process_folders_missing: [
    {},
    'the server was started with no folders to run as processes; name one with --worker, --lb or --process-root',
  ],
  process_root_missing: [
    { image: 'dir:a' },
    "image 'dir:a' runs a folder of this machine, and no --process-root is set",
  ],
  engine_not_configured: [{ image: 'a' }, "image 'a' needs a container engine, and none is configured"],
  folder_unnamed: [{}, "image 'dir:' needs the path of a folder"],
  folder_missing: [{ folder: '/a' }, "folder '/a' does not exist"],
  folder_not_a_folder: [{ path: '/a' }, "'/a' is not a folder; name the one that it is in"],
  folder_outside: [
    { folder: '/a', real: '/b', roots: ['/c', '/d'] },
    "folder '/a', which is really '/b', is outside of the process roots: /c, /d",
  ],
  access_refused: [{ problem: '/a may not be entered (EACCES)' }, '/a may not be entered (EACCES)'],
  handler_missing: [
    { folder: '/a', files: ['x.py', 'x.ts', 'x.js'], other: null },
    "folder '/a' has no x.py, x.ts or x.js, there or in src, and no command is given",
  ],
  python_environment_broken: [
    { environment: '/a/.venv' },
    "the Python of '/a/.venv' does not run, because the folder was moved or its Python is gone; recreate it, as with python3 -m venv --clear '/a/.venv'",
  ],
  program_missing: [{ name: 'a', path: '/a' }, "cannot start 'a': /a does not exist"],
  program_not_executable: [{ name: 'a', path: '/a' }, "cannot start 'a': /a is not an executable file"],
  program_not_in_path: [
    { name: 'a', path: '/bin', looksLikeShell: true },
    "cannot start 'a': not found in PATH (/bin); args is not a shell script: for one, write sh -c '...'",
  ],
  program_refused: [{ name: 'a', code: 'E2BIG' }, "cannot start 'a': its arguments and variables are too long"],
  null_character: [{ name: 'a' }, "cannot start 'a': an argument or variable holds a NUL character"],
  private_folder: [{ code: 'EROFS' }, 'cannot write the private folder or the log of the worker: EROFS'],
  ports_exhausted: [{ first: 1, last: 2 }, 'no port from 1 to 2 of this machine is free for a worker to serve'],
  engine_away: [
    { how: 'not_found', address: 'unix:///a', said: '' },
    'the container engine is away: none was found at unix:///a; start Docker or Podman, or give --docker',
  ],
  engine_refused: [{ said: 'no' }, 'the container engine refuses it: no'],
  engine_elsewhere: [
    {},
    'a container of a load-balancing endpoint cannot be started: its engine is on another machine, and this server would not reach what it serves',
  ],
  engine_disk_full: [{}, 'there is no space left on the disk of the container engine'],
  network_refused: [{ said: 'no' }, 'the engine makes no network for containers: no'],
  network_gone: [{ said: 'no' }, 'the network of the containers was removed (no)'],
  volume_unseen: [
    {},
    'the engine does not see the folder of the network volume or of a model; it has to run on this machine',
  ],
  memory_too_small: [{ memoryMb: 4 }, '4 MB of memory are too few for a container'],
  init_missing: [{ said: 'no' }, 'Podman has no init for containers; install catatonit (no)'],
  gpu_toolkit_missing: [
    { said: 'no' },
    'the engine cannot give GPUs to containers; install the NVIDIA Container Toolkit (no)',
  ],
  gpu_device_missing: [
    { said: 'no' },
    "the engine's machine has no device for the GPU; load its driver amdgpu there (no)",
  ],
  gpu_not_listed: [{ index: 3, count: 2, folder: 'sys/a' }, 'GPU 3 is not among the 2 that the kernel lists (/sys/a)'],
  podman_without_gpus: [
    { version: '4.3', needed: '5.4' },
    'Podman 4.3 gives containers no GPUs of NVIDIA when it is asked over its API; 5.4 or newer is needed, or Docker',
  ],
  registry_private: [
    { image: 'r.lan/a', host: 'r.lan' },
    "image 'r.lan/a' cannot be used: its registry r.lan is not public, and the operator allows this account public ones only",
  ],
  pull_failed: [
    { image: 'r/a', host: 'r', why: 'unreachable', said: 'no' },
    "image 'r/a' cannot be downloaded: r cannot be reached (no)",
  ],
  image_gone: [{ image: 'a' }, "image 'a' of this release no longer exists"],
  image_vanished: [{ image: 'a' }, "image 'a' was downloaded but does not exist"],
  image_without_command: [{}, 'the image names no command, and args gives none'],
  image_program_missing: [{ said: 'no' }, 'its program does not exist in the image (no)'],
  image_program_not_executable: [{ said: 'no' }, 'its program is not executable (no)'],
  image_of_other_processor: [{}, 'its program is built for another kind of processor than this machine has'],
  init_failed: [
    { program: 'a', problem: 'other_processor', said: 'no', architecture: 'x86_64' },
    "its program 'a' is not a program for this machine (x86_64)",
  ],
  stopped: [{ during: 'start' }, 'it was stopped before its container was started'],
  other: [{ problem: 'an internal error' }, 'an internal error'],
}

function samples(): [StartFailure, string][] {
  return Object.entries(SAMPLES).map(([kind, [facts, text]]) => [{ kind, ...facts } as StartFailure, text])
}

/** Words of other failures, of engines, of registries and of workers. */
const MISLEADING =
  'Cannot connect to the Docker daemon at unix:///run/docker.sock; its network volume v does not exist; manifest unknown; out of memory; refers to secrets; the variable PORT must be; check x failed'

/** The facts that are no text for people, and those that are text of others. */
const VALUES = new Set(['kind', 'how', 'why', 'during', 'code', 'said'])

/** The same failure, in other words. */
function reworded(failure: StartFailure): StartFailure {
  const facts = Object.entries(failure).map(([name, value]) => {
    const isValue = VALUES.has(name) || (failure.kind === 'init_failed' && name === 'problem')
    if (isValue || !(typeof value === 'string' || Array.isArray(value))) return [name, value]
    return [name, Array.isArray(value) ? [MISLEADING, MISLEADING] : MISLEADING]
  })
  return Object.fromEntries(facts) as unknown as StartFailure
}

test('each failure of a start has a message', () => {
  for (const [failure, text] of samples()) assert.equal(startFailureText(failure), text)
})

test('the message of a failure does not change its effect, before a start and after one', () => {
  const explained = (startFailure: StartFailure | null, exit: Partial<ObservedExit> | null) => {
    const exits = exit === null ? [] : [anExit({ startedAtMs: null }, { code: null, ...exit })]
    const snapshot = aSnapshot({ queue: { queued: 1, headQueuedAtMs: NOW }, exits })
    const capacity = { freeWorkers: null, bound: 'nothing' }
    const { cause, advice } = explainEndpoint(snapshot, { capacity, startFailure, nowMs: NOW })
    return { cause, advice }
  }
  for (const [failure] of samples()) {
    const { cause, advice } = startRemedy(failure)
    for (const told of [failure, reworded(failure)]) {
      assert.deepEqual(startRemedy(told), startRemedy(failure), failure.kind)
      assert.deepEqual(explained(told, null), { cause, advice }, failure.kind)
      for (const kind of ['not_started', 'program_not_started'] as const) {
        assert.deepEqual(explained(null, { cause: { kind, failure: told } }), { cause, advice }, failure.kind)
      }
    }
  }
})

test('what was wrong with a worker is known by its kind, whatever the worker says', () => {
  const check = { kind: 'check_failed', check: MISLEADING, reason: MISLEADING } as const
  assert.equal(findCrashCause(anExit({ problem: check })), 'fitness_failed')
  const health = { kind: 'health_status', status: 500, path: '/?it answers 404 at' } as const
  const ill = anExit({ problem: { kind: 'unhealthy', forS: 60, health } })
  assert.equal(findCrashCause(ill), 'crash_loop')
  assert.match(remedyForExit(ill.exit!, ill.problem).advice, /must answer 200 when it is healthy/)
  const memory = anExit({}, { cause: { kind: 'out_of_memory', limitMb: null } })
  assert.deepEqual([findCrashCause(memory), findCrashCause(anExit())], ['out_of_memory', 'crash_loop'])
})

test('the reason of a start error is kept, and any other error keeps its message', () => {
  const failure = { kind: 'volume_missing', volume: 'v1' } as const
  const error = new WorkerStartError(failure)
  assert.deepEqual(
    [startFailureFromError(error), error.code, error.message],
    [failure, 'invalid', startFailureText(failure)],
  )
  assert.deepEqual(startFailureFromError(new AppError('not_found', 'registry r not found')), {
    kind: 'other',
    problem: 'registry r not found',
  })
  assert.match(startFailureText(startFailureFromError(new Error('secret'))), /^an internal error occurred/)
})
