/** What is known of workers that could not be started or that ended by themselves: which kind of failure it is, and what helps. */
import type { Worker, WorkerExit } from './worker.ts'
import type { HealthProblem, WorkerProblem } from './worker-problem.ts'

/** Why no worker can be started, as one word. */
export type StartFailure = 'image_error' | 'engine_away' | 'secret_missing' | 'volume_missing' | 'settings_invalid'
/** Why workers end that should go on, as one word. */
export type CrashCause =
  | StartFailure
  | 'crash_loop'
  | 'out_of_memory'
  | 'fitness_failed'
  | 'hung_start'
  | 'unhealthy'
  | 'never_healthy'

/** The sentence for secrets that the environment names and that do not exist. */
export function missingSecretsText(names: readonly string[]): string {
  return `the environment refers to secrets that do not exist: ${names.join(', ')}`
}

/** The sentence for a network volume that an endpoint has and that does not exist. */
export function missingVolumeText(id: string): string {
  return `its network volume ${id} does not exist`
}

/** A kind of text and what helps against what it tells of; `$1` stands for the first group. */
interface Rule {
  readonly tells: RegExp
  readonly advice: string
  /** Whether trying again is of no use before somebody has changed something; false when left out. */
  readonly lasts?: true
}

const ENGINE_AWAY =
  /docker daemon|(docker|podman)\S{0,40}\.sock|no container engine was found|container engine( at \S{1,200})? (is away|does not answer|does not work|cannot be reached|is overloaded|was lost|was stopped)/i
const SECRET_MISSING = /refers to (unknown )?secrets\b/
const VOLUME_MISSING = /^its network volume \S+ does not exist$/
const SETTINGS_INVALID = /^the variable [A-Z_]+ must be /
const OUT_OF_MEMORY = /out of memory|\boom\b|memory limit|more memory than|more than its \d+ MB of memory/i
/** An init says so of a program that it could not start. */
const NO_PROGRAM = / because its program\b/

const ARCHITECTURE =
  'build the image for the processor of this machine (docker build --platform linux/amd64 or linux/arm64)'
const CREDENTIALS =
  'save a registry credential that may read the image, name it in "registry" of the template or endpoint, and check the name of the image'

/** How much of a text is looked at; all of them come from outside. */
const MAX_READ = 8_000

/** The first that fits counts. The texts are the engines' and registries' own. */
const START_RULES: readonly Rule[] = [
  {
    tells: ENGINE_AWAY,
    advice: 'start the container engine (systemctl start docker) and see that this server may use its socket',
  },
  { tells: SECRET_MISSING, advice: 'create the secrets (runyard secrets create), or take them out of the environment' },
  {
    tells: SETTINGS_INVALID,
    advice: 'correct the variable in the environment of the endpoint or of its template, or the secret that it names',
  },
  { tells: VOLUME_MISSING, advice: 'create a network volume and name it in networkVolumes of the endpoint' },
  {
    tells: /needs a container engine, and none is configured/,
    advice: 'start a container engine and the server anew, or use an image dir:<folder>, which needs none',
    lasts: true,
  },
  {
    tells: /has no device for the GPU/,
    advice: "load the driver amdgpu on the engine's machine, and see that /dev/kfd is there",
  },
  { tells: /gives containers no GPUs of NVIDIA/, advice: 'use a newer Podman, or Docker (--docker names the engine)' },
  { tells: /has no init for containers/, advice: 'install catatonit where the engine runs' },
  {
    tells: /would not reach what it serves/,
    advice: 'use an engine of this machine (--docker), or run the folder without a container (image dir:<folder>)',
  },
  {
    tells:
      /no matching manifest|exec format error|wrong architecture|does not match the .{0,80}platform|another kind of processor|not built for a machine|no program for this machine/i,
    advice: ARCHITECTURE,
    lasts: true,
  },
  {
    tells:
      /unauthorized|authentication required|incorrect username or password|access denied|no basic auth|wants a credential|does not accept the credential|or it is private|not for the credential|\b40[13]\b|forbidden/i,
    advice: CREDENTIALS,
    lasts: true,
  },
  {
    tells:
      /no such host|name resolution|i\/o timeout|timeout exceeded|deadline exceeded|network is unreachable|connection refused|TLS handshake|x509|ENOTFOUND|ECONNREFUSED|EAI_AGAIN|cannot be downloaded: \S{1,200} cannot be reached|nothing came for \d+ minutes/i,
    advice:
      'see that this machine reaches the registry (name, network, proxy, certificate), or load the image by hand (docker load)',
  },
  {
    tells: /has no (?:handler|server)\.py.{0,80} and args gives no command/,
    advice: 'put such a file into the folder, or name a command in args',
    lasts: true,
  },
  {
    tells:
      /executable file not found|not found in PATH|no such file or directory|does not exist in the image|names no command/i,
    advice: 'name a command in args that exists in the image',
    lasts: true,
  },
  {
    tells:
      /manifest unknown|manifest .{0,200}not found|no such image|repository .{0,200}not found|not found: manifest|image .{0,200}(does not exist|not found|is not there|no longer there)|has no such image/i,
    advice: 'check the name and the tag of the image, and that it was pushed or built on this machine',
    lasts: true,
  },
  {
    tells: /permission denied|not executable|is a directory|EACCES/i,
    advice:
      'make the entry point executable (chmod +x, and a first line #! that names its interpreter), or name another command in args',
    lasts: true,
  },
  {
    tells: /no space left on|ENOSPC|disk quota/i,
    advice: 'free disk space where images and containers are kept (docker system df shows what takes it)',
  },
  {
    tells: /could not select device driver|nvidia-container|NVIDIA Container Toolkit|\bCDI\b/i,
    advice: "install the GPU vendor's container toolkit for the engine (runyard doctor checks it)",
  },
  {
    tells: /allows no more downloads|toomanyrequests/i,
    advice: 'wait, or save a registry credential, for which the registry allows more downloads',
  },
  {
    tells: /too few for a container/,
    advice: 'choose a CPU flavor with more memory',
  },
  {
    tells: /outside of the process roots|no --process-root is set|no folders to run as processes/,
    advice: 'start the server with --process-root <folder> that has it',
    lasts: true,
  },
]

/** Which kind of failure a reason tells of that kept a worker from being started. */
export function startFailureOf(problem: string): StartFailure {
  if (ENGINE_AWAY.test(problem.slice(0, MAX_READ))) return 'engine_away'
  if (SECRET_MISSING.test(problem)) return 'secret_missing'
  if (SETTINGS_INVALID.test(problem)) return 'settings_invalid'
  return VOLUME_MISSING.test(problem) ? 'volume_missing' : 'image_error'
}

/** What helps where no worker can be started for this reason. */
export function adviceForStart(problem: string): string {
  return adviceIn(START_RULES, problem.slice(0, MAX_READ)) ?? 'mend it and save the template or the endpoint again'
}

/** Whether a worker could not be started for a reason that lasts until somebody changes something, such as an image that is not there. */
export function isLastingStartFailure(worker: Worker): boolean {
  const { exit } = worker
  if (exit === null || !(neverStarted(worker) || NO_PROGRAM.test(exit.cause))) return false
  return ruleOf(START_RULES, exit.cause.slice(0, MAX_READ))?.rule.lasts === true
}

/** Which kind of failure ended a worker that has crashed. */
export function crashCauseOf(worker: Worker): CrashCause {
  const { stopReason, problem, exit, serves } = worker
  if (stopReason === 'hung_start') return 'hung_start'
  if (stopReason === 'never_healthy') return 'never_healthy'
  if (stopReason === 'wedged' || stopReason === 'silent') return 'unhealthy'
  if (stopReason === 'unhealthy' && serves !== null) return 'unhealthy'
  if (stopReason === 'unhealthy' || problem?.kind === 'check_failed') return 'fitness_failed'
  if (exit === null) return 'crash_loop'
  if (neverStarted(worker) || NO_PROGRAM.test(exit.cause)) return startFailureOf(exit.cause)
  if (/when the container engine was stopped/.test(exit.cause)) return 'engine_away'
  return OUT_OF_MEMORY.test(exit.cause) ? 'out_of_memory' : 'crash_loop'
}

/** Whether the cause of an exit tells of a port that the worker's variables name and that others had. */
export function tellsOfTakenPort(cause: string): boolean {
  return /port \d+, which its variable \w+ names, is in use by another/.test(cause)
}

/** Whether a worker has ended because its process or container could not be started at all. */
export function neverStarted({ startedAtMs, stopReason, exit }: Worker): boolean {
  if (startedAtMs !== null || stopReason !== null || exit === null || exit.code !== null || exit.signal !== null)
    return false
  // One whose start was not recorded, because the server ended just then.
  return !/^(ended|was not found|is not known)/.test(exit.cause)
}

const READ_OUTPUT = 'read its output (runyard logs <worker>) and fix the error it ends with'

/** What helps against what is wrong with a worker. */
export function adviceForProblem(problem: WorkerProblem): string {
  return adviceOf(problem) ?? READ_OUTPUT
}

/** Null where the problem alone does not tell what helps. */
function adviceOf(problem: WorkerProblem): string | null {
  switch (problem.kind) {
    case 'check_failed':
      return 'mend what the fitness check of the worker has found'
    case 'loop_stuck':
      return 'look at the last lines of its output; often concurrency_modifier does not return a number'
    case 'silent':
      return 'see what it does (runyard logs <worker>): its process is there, but neither works nor answers; a full machine does that too'
    case 'hung_start':
      return 'load less before the handler starts, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment of the endpoint'
    case 'never_healthy':
    case 'unhealthy':
      return problem.health === null ? null : adviceOnHealth(problem.health)
    case 'folder_reserved':
      return null
    default:
      return adviceOnHealth(problem)
  }
}

function adviceOnHealth(problem: HealthProblem): string {
  switch (problem.kind) {
    case 'not_listening': {
      const { variable } = problem
      return `let the program listen on the port in its variable ${variable}. In a container it has to listen at all addresses (0.0.0.0), and ${variable} may be set to the port on which it listens`
    }
    case 'no_health_response':
      return 'look at its output (runyard logs <worker>); where it does one thing at a time, let it answer its health check from another thread, or on a port of its own (PORT_HEALTH)'
    case 'health_status':
      return adviceOnStatus(problem.status)
  }
}

function adviceOnStatus(status: number): string {
  if (status === 404) return 'set HEALTH_CHECK_PATH to a path of the program that answers 200 when it is well'
  if (status === 401 || status === 403) return 'let the path in HEALTH_CHECK_PATH answer 200 without credentials'
  if (status === 204) {
    return 'load less before the program answers 200, or allow more time with RUNPOD_INIT_TIMEOUT (seconds) in the environment'
  }
  if (status >= 300 && status < 400) {
    return 'set HEALTH_CHECK_PATH to the path that answers 200 itself; redirects are not followed'
  }
  return 'look at its output (runyard logs <worker>): the path in HEALTH_CHECK_PATH has to answer 200 when it is well'
}

/** Rules about a port that another worker has, which come before what is wrong with the worker: it is why. */
const TAKEN_PORT_RULES: readonly Rule[] = [
  {
    tells: /port \d+, which its variable (\w+) names, is in use by another worker/,
    advice:
      'workers of folders share the ports of this machine: set workersMax to 1, let the program take a free port instead of the one in $1, or run it in a container, which has ports of its own',
  },
]

/** Rules about how a worker ended, before anything that it printed counts. */
const CAUSE_RULES: readonly Rule[] = [
  {
    tells: /when the container engine was stopped/,
    advice: 'nothing, if that was on purpose; else look at the log of the engine (journalctl -u docker)',
  },
  {
    tells: / GB of its container disk$/,
    advice: 'raise the container disk ("disk" of the endpoint), write less, or write to a network volume',
  },
  {
    tells: OUT_OF_MEMORY,
    advice:
      'choose a CPU flavor or machine with more memory, or load less: smaller models, fewer jobs at once, fewer processes',
  },
]

/** Rules about the last lines that a worker printed. */
const OUTPUT_RULES: readonly Rule[] = [
  {
    tells: /No module named '([^']{1,200})'/,
    advice:
      "install the Python module '$1' where the worker runs: in the image, or in the folder's .venv (python3 -m venv .venv && .venv/bin/pip install $1)",
  },
  {
    tells: /Cannot find (?:package|module) '([^'./][^':]{0,200})'/,
    advice: "install '$1' in the worker's folder (npm install $1)",
  },
  {
    tells:
      /CUDA out of memory|CUDA error: out of memory|OutOfMemoryError: CUDA|CUBLAS_STATUS_ALLOC_FAILED|HIP out of memory/,
    advice:
      'the model does not fit into the memory of the GPU: use a pool with larger cards, more of them (gpu.count), a smaller or quantized model, or a smaller batch',
  },
  {
    tells: /MemoryError|heap out of memory|Cannot allocate memory|std::bad_alloc/,
    advice: 'the worker has too little memory: choose a CPU flavor or machine with more, or load less at once',
  },
  {
    tells: /EADDRINUSE|[Aa]ddress already in use/,
    advice: 'another process has the port: let the worker listen on the port in its variable PORT, or on another one',
  },
  { tells: /[Ee]xec format error/, advice: ARCHITECTURE },
  {
    tells:
      /NVIDIA driver on your system is too old|CUDA driver version is insufficient|no kernel image is available|unsupported display driver/,
    advice:
      'the CUDA version of the image does not fit the driver or the card: use an image for an older CUDA, update the driver, or set gpu.minCudaVersion',
  },
  {
    tells: /Found no NVIDIA driver|No CUDA GPUs are available|CUDA-capable device|libcuda\.so/,
    advice: 'the worker sees no GPU: give the endpoint GPUs (gpu.pools), and check the machine with runyard doctor',
  },
  {
    tells: /(lib[\w.+-]{1,80}\.so[\w.]{0,20}): cannot open shared object file/,
    advice: 'the image lacks the system library $1: install the package that has it',
  },
  {
    tells:
      /GatedRepoError|gated repo|401 Client Error.{0,200}huggingface|Repository Not Found for url.{0,200}huggingface/,
    advice:
      'the model is private or gated: save a token as a secret and give it as HF_TOKEN={{ RUNPOD_SECRET_<name> }}, and accept the license of the model',
  },
  {
    tells: /No space left on device|ENOSPC/,
    advice:
      'the disk is full: raise the container disk ("disk"), write to a network volume, or free space on the machine',
  },
  {
    tells: /Temporary failure in name resolution|getaddrinfo (?:ENOTFOUND|EAI_AGAIN)|Name or service not known/,
    advice:
      'the worker cannot look up a host name: check the network of the machine, or put what it downloads into the image',
  },
  {
    tells: /can't open file|No such file or directory|Cannot find module/,
    advice: 'check that the folder of the image and the command in args name files that exist',
  },
  {
    tells: /[Pp]ermission denied|EACCES/,
    advice: 'the worker may not read, write or run a file: check its owner and mode',
  },
]

/** Rules about how a worker ended that count where its output tells of nothing else: a port may be that of a service which it uses. */
const SUSPICION_RULES: readonly Rule[] = [
  {
    tells: /port \d+, which its variable (\w+) names, is in use by another program/,
    advice:
      'if the worker is to listen on the port in $1, name another one there; else read its output (runyard logs <worker>)',
  },
]

/** Rules about exit codes, as shells and engines use them. */
const CODE_RULES: Readonly<Record<number, string>> = {
  126: 'the command is there and cannot be run: make it executable (chmod +x), and see that its first line names an interpreter that exists',
  127: 'the command does not exist: check args and the PATH of the image',
  134: 'it aborted itself (SIGABRT), mostly in a native library: read the last lines of its output',
  137: 'it was killed (SIGKILL), often because memory ran out; look at the memory it needs',
  139: 'it crashed in native code (SIGSEGV), often since CUDA, driver and a library do not fit together: pin their versions in the image',
  143: 'it was asked to end from outside (SIGTERM) and not by Runyard: look for who does that',
}
const SIGNAL_CODES: Readonly<Record<string, number>> = { SIGABRT: 134, SIGKILL: 137, SIGSEGV: 139, SIGTERM: 143 }

/** What usually helps after a worker ended like this. @param problem what was wrong with it before; null for nothing */
export function adviceFor(exit: WorkerExit, problem: WorkerProblem | null): string {
  if (NO_PROGRAM.test(exit.cause)) return adviceForStart(exit.cause)
  const found =
    adviceIn(TAKEN_PORT_RULES, exit.cause) ??
    (problem === null ? null : adviceOf(problem)) ??
    adviceIn(CAUSE_RULES, exit.cause) ??
    adviceIn(OUTPUT_RULES, exit.lastLines.join('\n').slice(-MAX_READ))
  const suspected = found ?? adviceIn(SUSPICION_RULES, exit.cause)
  if (suspected !== null) return suspected
  const code = exit.signal === null ? exit.code : SIGNAL_CODES[exit.signal]
  const byCode = code === null || code === undefined ? undefined : CODE_RULES[code]
  if (byCode !== undefined) return byCode
  if (exit.code === 0) {
    return 'the worker ended by itself without an error; its program must call start() and keep running'
  }
  return READ_OUTPUT
}

function adviceIn(rules: readonly Rule[], text: string): string | null {
  const found = ruleOf(rules, text)
  return found === null ? null : found.rule.advice.replaceAll('$1', () => found.match[1] ?? '')
}

/** The first rule that tells of a text. */
function ruleOf(rules: readonly Rule[], text: string): { readonly rule: Rule; readonly match: RegExpExecArray } | null {
  for (const rule of rules) {
    const match = rule.tells.exec(text)
    if (match !== null) return { rule, match }
  }
  return null
}
