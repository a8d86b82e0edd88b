/** Kinds of failures of workers that could not be started or that ended by themselves, and their remedies. */
import { type StartFailure, startRemedy } from './start-failure.ts'
import { type Fix, type Remedy, START_REMEDIES, type StartCause } from './start-remedy.ts'
import type { Worker } from './worker.ts'
import type { ExitCause, PortConflict, WorkerExit } from './worker-exit.ts'
import type { HealthProblem, WorkerProblem } from './worker-problem.ts'

/** Reason why workers end that should continue, as one word. */
export type CrashCause =
  | StartCause
  | 'crash_loop'
  | 'out_of_memory'
  | 'fitness_failed'
  | 'hung_start'
  | 'unhealthy'
  | 'never_healthy'

/** A pattern in foreign text with its remedy; `$1` in the advice stands for the first group. */
interface Rule extends Remedy {
  readonly pattern: RegExp
}

/** Limit of read characters of a worker's output. */
const MAX_READ = 8_000

/**
 * Reason why the program of a worker was not started, with or without its container; null if it was started.
 */
function findStartFailure(worker: Worker): StartFailure | null {
  const cause = worker.exit?.cause
  if (cause?.kind === 'program_not_started') return cause.failure
  return cause?.kind === 'not_started' && neverStarted(worker) ? cause.failure : null
}

/**
 * True if a worker could not be started for a reason that lasts until a person changes something, such as a
 * missing image.
 */
export function isLastingStartFailure(worker: Worker): boolean {
  const failure = findStartFailure(worker)
  return failure !== null && startRemedy(failure).lasts
}

/** True if a crashed worker, or its start, failed because its GPU had too little memory. */
export function lacksGpuMemory({ exit, problem }: Pick<Worker, 'exit' | 'problem'>): boolean {
  return exit !== null && remedyForExit(exit, problem).fixes.includes('gpu_memory')
}

/** Kind of the failure that ended a crashed worker. */
export function findCrashCause(worker: Worker): CrashCause {
  const { stopReason, problem, exit, serves } = worker
  if (stopReason === 'hung_start') return 'hung_start'
  if (stopReason === 'never_healthy') return 'never_healthy'
  if (stopReason === 'wedged' || stopReason === 'silent') return 'unhealthy'
  if (stopReason === 'unhealthy' && serves !== null) return 'unhealthy'
  if (stopReason === 'unhealthy' || problem?.kind === 'check_failed') return 'fitness_failed'
  const failure = findStartFailure(worker)
  if (failure !== null) return startRemedy(failure).cause
  if (exit?.cause.kind === 'engine_stopped') return 'engine_away'
  return exit?.cause.kind === 'out_of_memory' ? 'out_of_memory' : 'crash_loop'
}

/** True if a worker ended because its process or container could not be started at all. */
export function neverStarted({ startedAtMs, stopReason, exit }: Worker): boolean {
  return startedAtMs === null && stopReason === null && exit?.cause.kind === 'not_started'
}

/** The fitness check of RunPod's SDK for the disk; it ends the worker with code 1. */
const NO_DISK_SPACE = /^Insufficient disk space/

const READ_OUTPUT = remedy('read its output (runyard logs <worker>) and fix the error it ends with', 'program')
function remedy(advice: string, ...fixes: readonly Fix[]): Remedy {
  return { advice, fixes }
}

/** The remedy for a problem of a worker. */
export function remedyForProblem(problem: WorkerProblem): Remedy {
  return remedyInProblem(problem) ?? READ_OUTPUT
}

/** Null if the problem alone does not determine a remedy. */
function remedyInProblem(problem: WorkerProblem): Remedy | null {
  switch (problem.kind) {
    case 'check_failed':
      return NO_DISK_SPACE.test(problem.reason)
        ? remedy(
            'free space on the disk that the worker sees as / (for containers that of their engine: docker system df), or lower RUNPOD_MIN_DISK_PERCENT in the environment of the endpoint',
            'machine',
            'environment',
          )
        : remedy('fix the problem that the fitness check of the worker found', 'unknown')
    case 'loop_stuck':
      return remedy(
        'look at the last lines of its output; often concurrency_modifier does not return a number',
        'program',
      )
    case 'silent':
      return remedy(
        'read its output (runyard logs <worker>): its process exists, but neither works nor responds; an overloaded machine has the same effect',
        'unknown',
      )
    case 'hung_start':
      return remedy(
        'load less before the handler starts, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment of the endpoint',
        'start_time',
      )
    case 'prestart_hung':
      return remedy(
        'load less in the hook, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment of the endpoint',
        'start_time',
      )
    // The rules about its output are more specific; see remedyForExit.
    case 'prestart_failed':
    case 'bootstrap_failed':
      return null
    case 'never_healthy':
    case 'unhealthy':
      return problem.health === null ? null : remedyForHealth(problem.health)
    case 'wake_failed':
      return remedy(
        'see its output, and check the path in RUNYARD_WAKE_URL: it must answer 2xx, also while the worker is awake',
        'environment',
      )
    case 'task_unasked':
    case 'folder_reserved':
    case 'not_suspended':
    case 'not_resumed':
      return null
    default:
      return remedyForHealth(problem)
  }
}

function remedyForHealth(problem: HealthProblem): Remedy {
  switch (problem.kind) {
    case 'not_listening': {
      const { variable } = problem
      return remedy(
        `let the program listen on the port in its variable ${variable}. In a container it has to listen at all addresses (0.0.0.0), and ${variable} may be set to the port on which it listens`,
        'health',
      )
    }
    case 'no_health_response':
      return remedy(
        'look at its output (runyard logs <worker>); where it does one thing at a time, let it answer its health check from another thread, or on a port of its own (PORT_HEALTH)',
        'health',
      )
    case 'health_status':
      return remedyForStatus(problem.status)
  }
}

function remedyForStatus(status: number): Remedy {
  if (status === 404)
    return remedy('set HEALTH_CHECK_PATH to a path of the program that answers 200 when it is healthy', 'health')
  if (status === 401 || status === 403)
    return remedy('let the path in HEALTH_CHECK_PATH answer 200 without credentials', 'health')
  if (status === 204) {
    return remedy(
      'load less before the program answers 200, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment',
      'start_time',
    )
  }
  if (status >= 300 && status < 400) {
    return remedy('set HEALTH_CHECK_PATH to the path that answers 200 itself; redirects are not followed', 'health')
  }
  return remedy(
    'look at its output (runyard logs <worker>): the path in HEALTH_CHECK_PATH must answer 200 when it is healthy',
    'health',
  )
}

/** The remedy for the cause of an end; null if the cause alone does not determine one. */
function remedyForCause(cause: ExitCause): Remedy | null {
  switch (cause.kind) {
    case 'engine_stopped':
      return remedy(
        'nothing, if that was on purpose; else look at the log of the engine (journalctl -u docker)',
        'machine',
      )
    case 'disk_full':
      if (cause.of === 'cache')
        return remedy(
          'nothing once, since the next worker begins with an empty cache; else start the server with a larger --worker-cache',
          { serve: ['--worker-cache', '<GB>'], title: 'Start the server with a larger cache for workers' },
        )
      return cause.of === 'container'
        ? remedy(
            'raise the container disk ("disk" of the endpoint), write less, or write to a network volume',
            'disk',
            'volume',
          )
        : remedy('write less, write to a network volume, or start the server with a larger --worker-disk', 'volume', {
            serve: ['--worker-disk', '<GB>'],
            title: 'Start the server with a larger disk for workers',
          })
    case 'machine_disk_full':
      return remedy(
        "free space on the disk of the server's data directory (runyard doctor names it): a worker that cannot write or print there ends, those on RunPod's SDK too",
        'machine',
      )
    case 'too_many_files':
      return remedy('write fewer files, or write them to a network volume', 'volume')
    case 'out_of_memory':
      return remedy(
        'choose a CPU flavor or machine with more memory, or load less: smaller models, fewer jobs at once, fewer processes',
        'memory',
      )
    default:
      return null
  }
}

/**
 * The remedy for a port that another worker or program uses. Another program may be a service that the worker
 * calls, which is no conflict: its remedy counts only if nothing else determines one.
 */
function remedyForPort(conflict: PortConflict | undefined, other: PortConflict['with']): Remedy | null {
  if (conflict?.with !== other) return null
  const { variable } = conflict
  return other === 'worker' || variable === null
    ? { advice: sharedPortsAdvice(conflict), fixes: SHARED_PORTS }
    : remedy(
        `if the worker is to listen on the port in ${variable}, name another one there; else read its output (runyard logs <worker>)`,
        'environment',
      )
}

/** Objects to change if workers share the ports of the machine. */
export const SHARED_PORTS: readonly Fix[] = [
  'one_worker',
  {
    serve: ['--worker-sandbox', 'auto', '--worker-network', 'open'],
    title: 'Start the server with a network for each worker',
  },
]

/** Advice for workers that share the ports of the machine. */
export function sharedPortsAdvice({ variable }: Pick<PortConflict, 'variable'>): string {
  const instead = variable === null ? '' : ` instead of the one in ${variable}`
  return (
    'workers of folders share the ports of this machine unless each has a network of its own ' +
    '(--worker-sandbox auto with --worker-network open; runyard doctor shows what is missing): ' +
    `set workersMax to 1, let the program take a free port${instead}, or run it in a container, which has ports of its own`
  )
}

/** Rules about the last lines that a worker printed. */
const OUTPUT_RULES: readonly Rule[] = [
  {
    pattern: /No module named '([^']{1,200})'/,
    advice:
      "install the Python module '$1' where the worker runs: in the image, or in the folder's .venv (name its package in requirements.txt and serve the folder with --setup, or python3 -m venv .venv && .venv/bin/pip install $1)",
    fixes: ['program'],
  },
  {
    pattern: /Cannot find (?:package|module) '@runyard\/worker'/,
    advice:
      "put @runyard/worker into the image: it is on no registry, so package.json names 'file:vendor/runyard-worker.tgz' and the Dockerfile copies vendor before npm install (runyard init makes such a folder)",
    fixes: ['program'],
  },
  {
    pattern: /Cannot find (?:package|module) '([^'./][^':]{0,200})'/,
    advice:
      "install '$1' where the worker runs: name it in package.json and serve the folder with --setup (or npm install $1)",
    fixes: ['program'],
  },
  {
    pattern: /TypeScript ([\w ]{1,40}) (?:is|are) not supported in strip-only mode/,
    advice:
      'Node removes the types of TypeScript and compiles nothing ($1 here): write that in plain JavaScript, or compile the handler to handler.mjs; erasableSyntaxOnly in tsconfig.json lets tsc and editors report such syntax',
    fixes: ['program'],
  },
  {
    pattern:
      /CUDA out of memory|CUDA error: out of memory|OutOfMemoryError: CUDA|CUBLAS_STATUS_ALLOC_FAILED|HIP out of memory/,
    advice:
      'the model does not fit into the memory of the GPU: use a pool with larger cards, more of them (gpu.count), a smaller or quantized model, or a smaller batch',
    fixes: ['gpu_memory'],
  },
  {
    pattern: /MemoryError|heap out of memory|Cannot allocate memory|std::bad_alloc/,
    advice: 'the worker has too little memory: choose a CPU flavor or machine with more, or load less at once',
    fixes: ['memory'],
  },
  {
    pattern: /EADDRINUSE|[Aa]ddress already in use/,
    advice:
      'another process has the port: let the worker listen on the port in its variable PORT, or on another one; ' +
      'workers of folders share the ports of the machine unless each has a network of its own (runyard doctor)',
    fixes: ['environment'],
  },
  {
    pattern: /ECONNREFUSED (?:127\.0\.0\.1|::1):\d{2,5}|host='(?:localhost|127\.0\.0\.1)'.{0,300}Connection refused/,
    advice:
      'nothing listens there for the worker: in a cage it has a network of its own and reaches no program of this machine at 127.0.0.1; ' +
      'start the server with --worker-network shared where the worker needs such a service',
    fixes: [
      { serve: ['--worker-network', 'shared'], title: "Start the server with the machine's network for workers" },
    ],
  },
  { ...START_REMEDIES.architecture, pattern: /[Ee]xec format error/ },
  {
    pattern:
      /NVIDIA driver on your system is too old|CUDA driver version is insufficient|no kernel image is available|unsupported display driver/,
    advice:
      'the CUDA version of the image does not fit the driver or the card: use an image for an older CUDA, update the driver, or set gpu.minCudaVersion',
    fixes: ['image', 'gpus'],
  },
  {
    pattern: /Found no NVIDIA driver|No CUDA GPUs are available|CUDA-capable device|libcuda\.so/,
    advice: 'the worker sees no GPU: give the endpoint GPUs (gpu.pools), and check the machine with runyard doctor',
    fixes: ['gpus', 'machine'],
  },
  {
    pattern: /(lib[\w.+-]{1,80}\.so[\w.]{0,20}): cannot open shared object file/,
    advice: 'the image lacks the system library $1: install the package that has it',
    fixes: ['program'],
  },
  {
    pattern:
      /GatedRepoError|gated repo|401 Client Error.{0,200}huggingface|Repository Not Found for url.{0,200}huggingface/,
    advice:
      'the model is private or gated: save a token as a secret and give it as HF_TOKEN={{ RUNPOD_SECRET_<name> }}, and accept the license of the model',
    fixes: ['token'],
  },
  {
    pattern: /Read-only file system: '[^']{0,200}models--/,
    advice:
      'the branch of a model has moved on at its hub, and the worker wants the newer files: set HF_HUB_OFFLINE=1 in the environment to run what the release has, or make a new release',
    fixes: [{ variable: 'HF_HUB_OFFLINE', value: '1', title: 'Run the files that the release has' }],
  },
  {
    pattern: /No space left on device|ENOSPC/,
    advice:
      'the disk is full: raise the container disk ("disk"), write to a network volume, or free space on the machine',
    fixes: ['disk', 'volume'],
  },
  {
    pattern: /Temporary failure in name resolution|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Name or service not known/,
    advice:
      'the worker cannot look up a host name: check the network of the machine, or put what it downloads into the image',
    fixes: ['machine', 'program'],
  },
  {
    pattern: /can't open file|No such file or directory|Cannot find module/,
    advice: 'check that the folder of the image and the command in args name files that exist',
    fixes: ['command'],
  },
  {
    pattern: /[Pp]ermission denied|EACCES/,
    advice: 'the worker may not read, write or run a file: check its owner and mode',
    fixes: ['program'],
  },
]

/** Rules about exit codes, by the conventions of shells and engines. */
const CODE_RULES: Readonly<Record<number, Remedy>> = {
  126: remedy(
    'the command exists and cannot be run: make it executable (chmod +x), and see that its first line names an interpreter that exists',
    'command',
  ),
  127: remedy('the command does not exist: check args and the PATH of the image', 'command'),
  134: remedy('it aborted itself (SIGABRT), mostly in a native library: read the last lines of its output', 'program'),
  137: remedy(
    'it was killed (SIGKILL), often because memory ran out; look at the memory it needs',
    'memory',
    'unknown',
  ),
  139: remedy(
    'it crashed in native code (SIGSEGV), often since CUDA, driver and a library do not fit together: pin their versions in the image',
    'program',
  ),
  143: remedy(
    'it was asked to end from outside (SIGTERM) and not by Runyard: find the program that does it',
    'machine',
  ),
}
const SIGNAL_CODES: Readonly<Record<string, number>> = { SIGABRT: 134, SIGKILL: 137, SIGSEGV: 139, SIGTERM: 143 }

/** The usual remedy for such an end. @param problem of the worker before its end; null without one */
export function remedyForExit(exit: WorkerExit, problem: WorkerProblem | null): Remedy {
  const { cause, suspicion, lastLines } = exit
  if ('failure' in cause) return startRemedy(cause.failure)
  const lead =
    remedyForPort(suspicion, 'worker') ??
    (problem === null ? null : remedyInProblem(problem)) ??
    remedyForCause(cause) ??
    remedyInOutput(lastLines.join('\n').slice(-MAX_READ)) ??
    remedyForPort(suspicion, 'program') ??
    // It was killed for that, so its exit code has no meaning.
    (problem?.kind === 'prestart_failed' || problem?.kind === 'bootstrap_failed' ? READ_OUTPUT : null)
  if (lead !== null) return lead
  const code = exit.signal === null ? exit.code : SIGNAL_CODES[exit.signal]
  const byCode = code === null || code === undefined ? undefined : CODE_RULES[code]
  if (byCode !== undefined) return byCode
  if (exit.code === 0) {
    return remedy(
      'the worker ended by itself without an error; its program must call start() and keep running',
      'program',
    )
  }
  return READ_OUTPUT
}

/** The remedy of the first matching rule. */
function remedyInOutput(text: string): Remedy | null {
  for (const { pattern, advice, fixes } of OUTPUT_RULES) {
    const match = pattern.exec(text)
    if (match !== null) return { advice: advice.replaceAll('$1', () => match[1] ?? ''), fixes }
  }
  return null
}
