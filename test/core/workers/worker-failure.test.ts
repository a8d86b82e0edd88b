import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerId } from '../../../src/core/ids.ts'
import {
  type PullProblem,
  type StartFailure,
  startFailureFromError,
  startFailureText,
  startRemedy,
} from '../../../src/core/workers/start-failure.ts'
import type { WorkerExit } from '../../../src/core/workers/worker-exit.ts'
import { type CrashCause, findCrashCause, remedyForExit } from '../../../src/core/workers/worker-failure.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { EngineError, engineError, RefusedCall, startRefusal } from '../../../src/drivers/docker/engine/engine-error.ts'
import { type ContainerEnd, containerExit } from '../../../src/drivers/docker/exit-cause.ts'
import { anExit } from '../../support/snapshots.ts'

const CUDA = 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB'
const OLD_DRIVER = 'RuntimeError: The NVIDIA driver on your system is too old (found version 11040)'
const GATED = '401 Client Error: Unauthorized for url: https://huggingface.co/meta/x/resolve/main/config.json'

const MOVED_ON =
  "OSError: [Errno 30] Read-only file system: '/runpod-volume/huggingface-cache/hub/models--a--b/snapshots/cd'"

const DB_TAKEN = { port: 5432, variable: 'DB_PORT', with: 'program' } as const

const ends: [what: string, exit: Partial<WorkerExit>, advice: RegExp, problem?: WorkerProblem][] = [
  [
    'a missing Python module',
    { lastLines: ["ModuleNotFoundError: No module named 'runpod'"] },
    /requirements\.txt and serve the folder with --setup, or .*pip install runpod\)/,
  ],
  ['a missing package', { lastLines: ["Error: Cannot find package 'left-pad' imported from"] }, /npm install left-pad/],
  [
    'a missing package beside one that no registry has',
    { lastLines: ["Error: Cannot find package 'left-pad' imported from"] },
    /name it in package\.json and serve the folder with --setup/,
  ],
  [
    'TypeScript that has to be compiled',
    {
      lastLines: [
        'SyntaxError [ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX]: TypeScript parameter property is not supported in strip-only mode',
      ],
    },
    /compiles nothing \(parameter property here\).*erasableSyntaxOnly/,
  ],
  [
    'a missing worker package',
    {
      lastLines: ["Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@runyard/worker' imported from /app/handler.mjs"],
    },
    /no registry.*file:vendor\/runyard-worker\.tgz.*runyard init/,
  ],
  ['a missing module of Node', { lastLines: ["Error: Cannot find module 'zod'"] }, /npm install zod/],
  ['a file that Python cannot open', { lastLines: ["can't open file '/x/handler.py'"] }, /name files that exist/],
  ['a folder that is gone', { lastLines: ['sh: No such file or directory'] }, /name files that exist/],
  ['a full GPU', { lastLines: [CUDA, 'Traceback'] }, /memory of the GPU.*gpu\.count/],
  ['a full memory, by Python', { lastLines: ['MemoryError'] }, /too little memory/],
  [
    'a full memory, by Node',
    { lastLines: ['FATAL ERROR: Reached heap limit - JavaScript heap out of memory'] },
    /too little/,
  ],
  ['a full memory, by the engine', { code: 137, cause: { kind: 'out_of_memory', limitMb: 4096 } }, /more memory/],
  ['a port in use', { lastLines: ['Error: listen EADDRINUSE: address already in use :::8000'] }, /variable PORT/],
  [
    'a service of the machine that a cage hides',
    { lastLines: ['Error: connect ECONNREFUSED 127.0.0.1:11434'] },
    /--worker-network shared/,
  ],
  ['a port in use, by Python', { lastLines: ['OSError: [Errno 98] Address already in use'] }, /variable PORT/],
  [
    'a port that another worker has',
    { suspicion: { port: 8001, variable: 'VLLM_PORT', with: 'worker' } },
    /workersMax to 1, .* the one in VLLM_PORT/,
    { kind: 'hung_start', limitS: 420 },
  ],
  [
    'a port that its output names and another worker of its endpoint has',
    { suspicion: { port: 8000, variable: null, with: 'worker', worker: 'w1' as WorkerId } },
    /--worker-sandbox auto with --worker-network open; runyard doctor .* workersMax to 1, let the program take a free port, or/,
  ],
  ['a port that another program has', { suspicion: DB_TAKEN }, /if the worker is to listen on the port in DB_PORT/],
  [
    'the port of a service, and another reason',
    {
      suspicion: DB_TAKEN,
      lastLines: ["ModuleNotFoundError: No module named 'psycopg'"],
    },
    /pip install psycopg/,
  ],
  ['a program for another processor', { lastLines: ['exec /run.sh: exec format error'] }, /--platform linux\/amd64/],
  ['a driver that is too old', { lastLines: [OLD_DRIVER] }, /update the driver/],
  ['no GPU', { lastLines: ['RuntimeError: No CUDA GPUs are available'] }, /gpu\.pools/],
  [
    'a missing library',
    { lastLines: ['ImportError: libGL.so.1: cannot open shared object file'] },
    /library libGL\.so\.1/,
  ],
  ['a gated model', { lastLines: [GATED] }, /HF_TOKEN/],
  ['a model that has moved on', { lastLines: [MOVED_ON] }, /HF_HUB_OFFLINE=1/],
  ['a full disk', { lastLines: ['OSError: [Errno 28] No space left on device'] }, /disk is full/],
  ['no network', { lastLines: ['socket.gaierror: [Errno -3] Temporary failure in name resolution'] }, /network/],
  [
    'a file it may not read',
    { lastLines: ["PermissionError: [Errno 13] Permission denied: '/data'"] },
    /owner and mode/,
  ],
  ['code 126', { code: 126 }, /chmod \+x/],
  ['code 127', { code: 127 }, /PATH of the image/],
  ['code 137', { code: 137 }, /often because memory ran out/],
  ['code 139', { code: 139 }, /SIGSEGV/],
  ['code 143', { code: 143 }, /not by Runyard/],
  ['an abort', { code: null, signal: 'SIGABRT' }, /native library/],
  ['a fault in native code', { code: null, signal: 'SIGSEGV' }, /pin their versions/],
  ['a kill from outside', { code: null, signal: 'SIGKILL' }, /often because memory ran out/],
  ['a hung start', { signal: 'SIGKILL' }, /RUNPOD_INIT_TIMEOUT/, { kind: 'hung_start', limitS: 420 }],
  [
    'a full container disk',
    { signal: 'SIGKILL', cause: { kind: 'disk_full', limitGb: 5, of: 'container' } },
    /raise the container disk/,
  ],
  ['a full disk of the machine', { code: 1, cause: { kind: 'machine_disk_full' } }, /runyard doctor/],
  [
    "a full disk that the check of RunPod's SDK has found",
    { code: 1 },
    /RUNPOD_MIN_DISK_PERCENT/,
    {
      kind: 'check_failed',
      check: '_disk_check',
      reason: 'Insufficient disk space: 0.00GB free (0.0%), 10.0% required',
    },
  ],
  [
    'a failed check',
    { lastLines: [CUDA] },
    /fix the problem that the fitness check/,
    { kind: 'check_failed', check: 'gpu', reason: 'out of memory' },
  ],
  ['a stuck loop', { signal: 'SIGKILL' }, /concurrency_modifier/, { kind: 'loop_stuck', forS: 115 }],
  ['silence', { signal: 'SIGKILL' }, /neither works nor responds/, { kind: 'silent', forS: 35 }],
  ['an end without an error', { code: 0 }, /must call start\(\) and keep running/],
  ['anything else', { code: 3, lastLines: ['ValueError: x'] }, /read its output/],
]

for (const [what, exit, advice, problem = null] of ends) {
  test(`after ${what} there is advice`, () => {
    assert.match(
      remedyForExit({ code: 1, signal: null, cause: { kind: 'ended' }, lastLines: [], ...exit }, problem).advice,
      advice,
    )
  })
}

test('a file that a command names and that is not there is no package to install', () => {
  const lastLines = ["Error: Cannot find module '/srv/worker/handler.mjs'"]
  assert.match(
    remedyForExit({ code: 1, signal: null, cause: { kind: 'ended' }, lastLines }, null).advice,
    /name files that exist/,
  )
})

test('output that was made to be slow to read does not hold the server up', () => {
  const evil = ["No module named '", 'lib', "Cannot find package '", '401 Client Error', '\u001b['].map(part =>
    part.repeat(200_000 / part.length),
  )
  for (const line of evil) {
    remedyForExit({ code: 1, signal: null, cause: { kind: 'ended' }, lastLines: Array(20).fill(line) }, null).advice
    assert.equal(startRemedy({ kind: 'engine_refused', said: line }).cause, 'image_error')
  }
})

/** Failure for an engine's refusal. */
function refused(said: string): StartFailure {
  return startFailureFromError(startRefusal(new EngineError(said, 500, false)))
}

/** Failures, and texts of engines and registries. */
const starts: [failure: StartFailure | string, cause: CrashCause, advice: RegExp][] = [
  [{ kind: 'secrets_missing', names: ['A', 'B'] }, 'secret_missing', /runyard secrets create/],
  [{ kind: 'volume_missing', volume: 'vol1' }, 'volume_missing', /networkVolumes/],
  [
    'Cannot connect to the Docker daemon at unix:///run/docker.sock. Is it running?',
    'engine_away',
    /start the container engine/,
  ],
  ['connect ENOENT /var/run/docker.sock', 'engine_away', /start the container engine/],
  [{ kind: 'engine_not_configured', image: 'a' }, 'image_error', /dir:<folder>/],
  ['manifest for a/b:1 not found: manifest unknown: manifest unknown', 'image_error', /name and the tag/],
  ['No such image: a:1', 'image_error', /name and the tag/],
  [
    "pull access denied for a/b, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
    'image_error',
    /registry credential/,
  ],
  [
    'Head "https://r/v2/a/manifests/1": unauthorized: incorrect username or password',
    'image_error',
    /registry credential/,
  ],
  ['Get "https://r/v2/": dial tcp: lookup r: no such host', 'image_error', /reaches the registry/],
  [
    'Get "https://r/v2/": net/http: request canceled while waiting (Client.Timeout exceeded)',
    'image_error',
    /reaches the registry/,
  ],
  [
    'Get "https://r:5000/v2/": dial tcp 10.0.0.1:5000: connect: connection refused',
    'image_error',
    /reaches the registry/,
  ],
  ['no matching manifest for linux/arm64/v8 in the manifest list entries', 'image_error', /--platform/],
  ['exec /run: exec format error', 'image_error', /--platform/],
  ['OCI runtime create failed: exec: "/run.sh": permission denied: unknown', 'image_error', /chmod \+x/],
  ['exec: "serve": executable file not found in $PATH: unknown', 'image_error', /command in args/],
  ['write /var/lib/docker/tmp: no space left on device', 'image_error', /free disk space/],
  ['could not select device driver "" with capabilities: [[gpu]]', 'image_error', /container toolkit/],
  [
    refused('error gathering device information while adding custom device "/dev/kfd": no such file'),
    'image_error',
    /amdgpu/,
  ],
  [refused('container create: stat /dev/dri/renderD129: no such file or directory'), 'image_error', /amdgpu/],
  [
    refused('container-init binary not found on the host: stat /x: no such file or directory'),
    'image_error',
    /catatonit/,
  ],
  [{ kind: 'podman_without_gpus', version: '4.3.1', needed: '5.4' }, 'image_error', /newer Podman/],
  [{ kind: 'engine_elsewhere' }, 'image_error', /engine of this machine/],
  [{ kind: 'folder_outside', folder: '/x', real: null, roots: ['/srv'] }, 'image_error', /--process-root/],
  [
    { kind: 'handler_missing', folder: '/x', files: ['server.py', 'server.js'], other: null },
    'image_error',
    /add such a file to the folder/,
  ],
  ['something else', 'image_error', /save the template/],
]

for (const [given, cause, advice] of starts) {
  const failure: StartFailure = typeof given === 'string' ? { kind: 'engine_refused', said: given } : given
  const text = typeof given === 'string' ? given : startFailureText(given)
  test(`a start that fails with "${text.slice(0, 60)}" is ${cause}, with advice`, () => {
    const found = startRemedy(failure)
    assert.equal(found.cause, cause)
    assert.match(found.advice, advice)
    const ended = { code: null, signal: null, cause: { kind: 'not_started', failure } } as const
    const never = anExit({ startedAtMs: null, readyAtMs: null }, ended)
    assert.equal(findCrashCause(never), cause)
    assert.equal(remedyForExit(never.exit!, null).advice, found.advice)
  })
}

/** Refusals of the driver of containers, in its own words. */
const refusals: [thrown: object, cause: CrashCause, advice: RegExp][] = [
  [{ code: 'ENOENT' }, 'engine_away', /start the container engine/],
  [{ code: 'ECONNREFUSED' }, 'engine_away', /start the container engine/],
  [{ message: 'socket hang up' }, 'engine_away', /start the container engine/],
  [new RefusedCall('shutting down', 503), 'engine_away', /start the container engine/],
  [new RefusedCall('could not select device driver "nvidia"', 500), 'image_error', /container toolkit/],
  [new RefusedCall('No command specified', 400), 'image_error', /command in args/],
  [new RefusedCall('exec: "x": executable file not found in $PATH', 500), 'image_error', /command in args/],
  [new RefusedCall('exec: "/x": permission denied: unknown', 500), 'image_error', /chmod \+x/],
  [new RefusedCall('exec format error', 500), 'image_error', /--platform/],
  [new RefusedCall('no space left on device', 500), 'image_error', /free disk space/],
]

test('the message of a refused call is one line', () => {
  const thrown = new RefusedCall('dial tcp: lookup r.io:\n no such host ', 500)
  assert.equal(engineError(thrown).message, 'dial tcp: lookup r.io: no such host')
})

test('what the driver of containers says of a start is understood', () => {
  for (const [thrown, cause, advice] of refusals) {
    const failure = startFailureFromError(startRefusal(thrown))
    const found = startRemedy(failure)
    assert.equal(found.cause, cause, failure.kind)
    assert.match(found.advice, advice, failure.kind)
  }
})

/** Cause of a failed download, the message of the engine, the message for people, and the remedy. */
const pulls: [why: PullProblem, said: string, told: string, advice: RegExp][] = [
  [
    'credential_missing',
    'unauthorized',
    'r.io requires a credential, and the template has none (unauthorized)',
    /registry credential/,
  ],
  [
    'credential_refused',
    'unauthorized',
    'r.io does not accept the credential of the template (unauthorized)',
    /registry credential/,
  ],
  [
    'not_found_or_private',
    'denied',
    'r.io has no such image, or it is private and the template names no credential (denied)',
    /registry credential/,
  ],
  [
    'not_found_for_credential',
    'denied',
    'r.io has no such image, or not for the credential of the template (denied)',
    /registry credential/,
  ],
  ['not_found', 'manifest unknown', 'r.io has no such image (manifest unknown)', /name and the tag/],
  ['unreachable', 'dial tcp: lookup', 'r.io cannot be reached (dial tcp: lookup)', /reaches the registry/],
  ['stalled', 'nothing came for 5 minutes', 'nothing came for 5 minutes', /reaches the registry/],
  [
    'other_processor',
    'no matching manifest',
    'it was not built for a machine of this kind (no matching manifest)',
    /--platform/,
  ],
  ['download_limit', 'slow down', 'r.io allows no more downloads for now (slow down)', /allows more downloads/],
  ['disk_full', 'no space', 'there is no space left on the disk of the container engine (no space)', /free disk space/],
  ['unknown', 'x509: certificate has expired', 'x509: certificate has expired', /reaches the registry/],
  ['unknown', 'something else', 'something else', /save the template/],
]

test('a failed download is reported with the message of the engine, and with advice', () => {
  for (const [why, said, told, advice] of pulls) {
    const failure: StartFailure = { kind: 'pull_failed', image: 'r.io/a:1', host: 'r.io', why, said }
    assert.equal(startFailureText(failure), `image 'r.io/a:1' cannot be downloaded: ${told}`)
    assert.equal(startRemedy(failure).cause, 'image_error')
    assert.match(startRemedy(failure).advice, advice, why)
  }
})

const ENDED: ContainerEnd = {
  code: 1,
  outOfMemory: false,
  withEngine: false,
  asked: false,
  memoryMb: 512,
  tail: '',
  architecture: 'amd64',
}
const init = (reason: string) => `[FATAL tini (7)] exec /run.sh failed: ${reason}`

const containerEnds: [what: string, end: Partial<ContainerEnd>, cause: CrashCause, advice: RegExp][] = [
  ['too much memory', { code: 137, outOfMemory: true }, 'out_of_memory', /more memory/],
  ['too much memory of the machine', { code: 137, outOfMemory: true, memoryMb: null }, 'out_of_memory', /more memory/],
  [
    'a program that is not there',
    { code: 127, tail: init('No such file or directory') },
    'image_error',
    /command in args/,
  ],
  ['a program that is not executable', { code: 126, tail: init('Permission denied') }, 'image_error', /chmod \+x/],
  ['a program for another processor', { code: 126, tail: init('Exec format error') }, 'image_error', /--platform/],
  ['the end of its engine', { code: 137, withEngine: true }, 'engine_away', /log of the engine/],
  ['an end of its own', { code: 3 }, 'crash_loop', /read its output/],
]

for (const [what, end, cause, advice] of containerEnds) {
  test(`after ${what} of a container the cause is ${cause}, with advice`, () => {
    const ended = anExit({}, { ...containerExit({ ...ENDED, ...end }), lastLines: [] })
    assert.equal(findCrashCause(ended), cause, String(ended.exit?.cause.kind))
    assert.match(remedyForExit(ended.exit!, null).advice, advice)
  })
}

test('a worker whose start was not recorded since the server ended just then has not failed to start', () => {
  const gone = anExit({ startedAtMs: null }, { code: null, cause: { kind: 'unseen', when: 'server_away' } })
  assert.equal(findCrashCause(gone), 'crash_loop')
})
