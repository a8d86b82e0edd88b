/**
 * Failures of starts of workers, as values made where they are known, and the only function that states them to
 * people.
 */
import { AppError, type ErrorCode, toAppError } from '../errors.ts'
import { type ModelProblem, modelProblemText } from '../models/model-problem.ts'
import { OPERATOR_FOLDERS } from './host-folder.ts'
import { remedyInForeignText, START_REMEDIES, type StartRemedy } from './start-remedy.ts'

/** Facts of each kind of failure. `said` is text of a container engine, a registry or the operating system. */
interface StartFailures {
  // Objects of the owner.
  readonly template_missing: { readonly template: string }
  readonly secrets_missing: { readonly names: readonly string[] }
  readonly volume_missing: { readonly volume: string }
  readonly settings_invalid: { readonly problem: string }
  readonly args_invalid: { readonly problem: string }
  readonly image_invalid: { readonly image: string }
  readonly folder_reserved: object
  // Options of the server.
  readonly containers_off: object
  readonly processes_off: object
  readonly workers_off: { readonly problem: string }
  readonly process_folders_missing: object
  readonly process_root_missing: { readonly image: string }
  readonly engine_not_configured: { readonly image: string }
  // Folders that run as processes.
  readonly folder_unnamed: object
  readonly folder_missing: { readonly folder: string }
  readonly folder_not_a_folder: { readonly path: string }
  /** `real` is null if the folder is not a link. */
  readonly folder_outside: { readonly folder: string; readonly real: string | null; readonly roots: readonly string[] }
  /** `problem` names the file or folder that the user of the server may not use, and its owner. */
  readonly access_refused: { readonly problem: string }
  /** `other` is a file in the folder that is for the other type of endpoint; null without one. */
  readonly handler_missing: {
    readonly folder: string
    readonly files: readonly string[]
    readonly other: OtherFile | null
  }
  readonly python_environment_broken: { readonly environment: string }
  /** `found` are the versions of Python that the machine has. */
  readonly python_missing: { readonly python: string; readonly found: readonly string[] }
  readonly sdk_not_installed: { readonly python: string; readonly said: string }
  readonly program_missing: { readonly name: string; readonly path: string }
  readonly program_not_executable: { readonly name: string; readonly path: string }
  readonly program_not_in_path: { readonly name: string; readonly path: string; readonly looksLikeShell: boolean }
  readonly program_refused: { readonly name: string; readonly code: string }
  readonly null_character: { readonly name: string }
  readonly private_folder: { readonly code: string }
  readonly ports_exhausted: { readonly first: number; readonly last: number }
  // Container engines.
  readonly engine_away: EngineAbsence
  readonly engine_refused: { readonly said: string }
  readonly engine_elsewhere: object
  readonly engine_disk_full: object
  readonly network_refused: { readonly said: string }
  readonly network_gone: { readonly said: string }
  readonly volume_unseen: object
  readonly memory_too_small: { readonly memoryMb: number | null }
  readonly init_missing: { readonly said: string }
  readonly gpu_toolkit_missing: { readonly said: string }
  readonly gpu_device_missing: { readonly said: string }
  readonly gpu_not_listed: { readonly index: number; readonly count: number; readonly folder: string }
  readonly podman_without_gpus: { readonly version: string; readonly needed: string }
  // Clusters.
  readonly cluster_away: { readonly said: string }
  readonly cluster_refused: { readonly said: string }
  /** Another program has a pod or secret of that name. */
  readonly cluster_name_taken: { readonly name: string }
  readonly cluster_volume_missing: object
  readonly cluster_elsewhere: object
  // Models.
  readonly model_failed: { readonly model: string; readonly problem: ModelProblem }
  readonly model_gone: { readonly model: string }
  // Images.
  /** Only the operator's images come from a registry that is not public. */
  readonly registry_private: { readonly image: string; readonly host: string }
  /** `said` is empty for an account that may not read the texts of a registry. */
  readonly pull_failed: {
    readonly image: string
    readonly host: string
    readonly why: PullProblem
    readonly said: string
  }
  readonly image_gone: { readonly image: string }
  readonly image_vanished: { readonly image: string }
  readonly image_without_command: object
  readonly image_program_missing: { readonly said: string }
  readonly image_program_not_executable: { readonly said: string }
  readonly image_of_other_processor: object
  /** The init of a container could not start its program; `program` is null if the init does not name it. */
  readonly init_failed: {
    readonly program: string | null
    readonly problem: 'missing' | 'not_executable' | 'other_processor' | 'unknown'
    readonly said: string
    readonly architecture: string
  }
  // Anything else.
  readonly stopped: { readonly during: 'download' | 'start' }
  readonly other: { readonly problem: string }
}

/** The reason why a worker cannot be started. */
export type StartFailure = {
  [Kind in keyof StartFailures]: { readonly kind: Kind } & StartFailures[Kind]
}[keyof StartFailures]

/** A file that a worker of the other type of endpoint would run: one that takes jobs, or one that serves requests. */
export interface OtherFile {
  /** Path in the folder. */
  readonly name: string
  readonly of: 'jobs' | 'requests'
}

/** State of an unavailable container engine. `address` is null if it does not matter. */
export interface EngineAbsence {
  readonly how: 'not_found' | 'lost' | 'unreachable' | 'unresponsive' | 'overloaded'
  readonly address: string | null
  readonly said: string
}

/** Reason why an image could not be downloaded; `unknown` if only the text of the engine contains it. */
export type PullProblem =
  | 'disk_full'
  | 'download_limit'
  | 'other_processor'
  | 'credential_missing'
  | 'credential_refused'
  | 'not_found'
  | 'not_found_or_private'
  | 'not_found_for_credential'
  | 'unreachable'
  | 'stalled'
  | 'engine_away'
  | 'unknown'

/** The error of a start, or of a check before it, with a known reason. */
export class WorkerStartError extends AppError {
  readonly failure: StartFailure

  constructor(failure: StartFailure, extras: { readonly cause?: unknown; readonly code?: ErrorCode } = {}) {
    const { code = 'invalid', ...others } = extras
    super(code, startFailureText(failure), others)
    this.failure = failure
  }
}

/** The failure of a thrown error of a start. */
export function startFailureFromError(thrown: unknown): StartFailure {
  return thrown instanceof WorkerStartError ? thrown.failure : { kind: 'other', problem: toAppError(thrown).message }
}

type Rules = {
  readonly [Kind in keyof StartFailures]: readonly [
    text: (failure: StartFailures[Kind]) => string,
    remedy: StartRemedy | ((failure: StartFailures[Kind]) => StartRemedy),
  ]
}

const foreign = ({ said }: { readonly said: string }) => remedyInForeignText(said)

/** Text and remedy of each failure. */
const RULES: Rules = {
  template_missing: [({ template }) => `its template ${template} does not exist`, 'other'],
  secrets_missing: [
    ({ names }) => `the environment refers to secrets that do not exist: ${names.join(', ')}`,
    'secrets',
  ],
  volume_missing: [({ volume }) => `its network volume ${volume} does not exist`, 'volume'],
  settings_invalid: [({ problem }) => problem, 'settings'],
  args_invalid: [({ problem }) => problem, 'other'],
  image_invalid: [({ image }) => `'${image}' is not a reference of a container image`, 'other'],
  folder_reserved: [() => OPERATOR_FOLDERS, 'other'],
  containers_off: [() => 'containers are off (--docker off)', 'engine_setting'],
  processes_off: [() => 'processes are off (--processes off)', 'processes'],
  workers_off: [({ problem }) => problem, 'machine'],
  process_folders_missing: [
    () => 'the server was started with no folders to run as processes; name one with --worker, --lb or --process-root',
    'process_root',
  ],
  process_root_missing: [
    ({ image }) => `image '${image}' runs a folder of this machine, and no --process-root is set`,
    'process_root',
  ],
  engine_not_configured: [
    ({ image }) => `image '${image}' needs a container engine, and none is configured`,
    'engine_setting',
  ],
  folder_unnamed: [() => "image 'dir:' needs the path of a folder", 'other'],
  folder_missing: [({ folder }) => `folder '${folder}' does not exist`, 'other'],
  folder_not_a_folder: [({ path }) => `'${path}' is not a folder; name the one that it is in`, 'other'],
  folder_outside: [
    ({ folder, real, roots }) =>
      `folder '${folder}'${real === null ? '' : `, which is really '${real}',`} is outside of the process roots: ${roots.join(', ')}`,
    'process_root',
  ],
  access_refused: [({ problem }) => problem, 'access'],
  handler_missing: [
    ({ folder, files, other }) =>
      `folder '${folder}' has no ${files.slice(0, -1).join(', ')} or ${files.at(-1)}, there or in src, and no command is given${otherText(other)}`,
    'handler',
  ],
  python_environment_broken: [
    ({ environment }) =>
      `the Python of '${environment}' does not run, because the folder was moved or its Python is gone; recreate it, as with python3 -m venv --clear '${environment}'`,
    'folder',
  ],
  python_missing: [
    ({ python, found }) =>
      `the app needs Python ${python}, which this machine lacks; it has ${found.length === 0 ? 'none that apps can use' : found.join(', ')}`,
    'python',
  ],
  sdk_not_installed: [
    ({ python, said }) => `RunPod's SDK could not be installed for Python ${python}: ${said}`,
    'packages',
  ],
  program_missing: [({ name, path }) => `cannot start '${name}': ${path} does not exist`, 'command'],
  program_not_executable: [
    ({ name, path }) => `cannot start '${name}': ${path} is not an executable file`,
    'entry_point',
  ],
  program_not_in_path: [
    ({ name, path, looksLikeShell }) => {
      const hint = looksLikeShell ? "; args is not a shell script: for one, write sh -c '...'" : ''
      return `cannot start '${name}': not found in PATH (${path})${hint}`
    },
    'command',
  ],
  program_refused: [
    ({ name, code }) => `cannot start '${name}': ${SPAWN_PROBLEMS[code] ?? code}`,
    ({ code }) => (code === 'ENOENT' || code === 'EACCES' ? 'entry_point' : 'other'),
  ],
  null_character: [({ name }) => `cannot start '${name}': an argument or variable holds a NUL character`, 'other'],
  private_folder: [
    ({ code }) => `cannot write the private folder or the log of the worker: ${code}`,
    ({ code }) => (code === 'ENOSPC' ? 'disk' : 'machine'),
  ],
  ports_exhausted: [
    ({ first, last }) => `no port from ${first} to ${last} of this machine is free for a worker to serve`,
    'machine',
  ],
  engine_away: [engineAwayText, 'engine'],
  engine_refused: [({ said }) => `the container engine refuses it: ${said}`, foreign],
  engine_elsewhere: [
    () =>
      'a container of a load-balancing endpoint cannot be started: its engine is on another machine, and this server would not reach what it serves',
    'local_engine',
  ],
  engine_disk_full: [() => NO_SPACE, 'disk'],
  network_refused: [({ said }) => `the engine makes no network for containers: ${said}`, foreign],
  network_gone: [({ said }) => `the network of the containers was removed (${said})`, 'again'],
  volume_unseen: [
    () => 'the engine does not see the folder of the network volume or of a model; it has to run on this machine',
    'machine',
  ],
  memory_too_small: [({ memoryMb }) => `${memoryMb} MB of memory are too few for a container`, 'memory'],
  init_missing: [({ said }) => `Podman has no init for containers; install catatonit (${said})`, 'container_init'],
  gpu_toolkit_missing: [
    ({ said }) => `the engine cannot give GPUs to containers; install the NVIDIA Container Toolkit (${said})`,
    'gpu_toolkit',
  ],
  gpu_device_missing: [
    ({ said }) => `the engine's machine has no device for the GPU; load its driver amdgpu there (${said})`,
    'amd_driver',
  ],
  gpu_not_listed: [
    ({ index, count, folder }) => `GPU ${index} is not among the ${count} that the kernel lists (/${folder})`,
    'machine',
  ],
  podman_without_gpus: [
    ({ version, needed }) =>
      `Podman ${version} gives containers no GPUs of NVIDIA when it is asked over its API; ${needed} or newer is needed, or Docker`,
    'podman',
  ],
  cluster_away: [({ said }) => `the cluster does not respond: ${said}`, 'cluster'],
  cluster_refused: [({ said }) => `the cluster refuses it: ${said}`, foreign],
  cluster_name_taken: [
    ({ name }) => `the cluster has an object ${name} already, which is not of this installation`,
    'machine',
  ],
  cluster_volume_missing: [
    () => 'its network volume cannot be mounted: the server was started without --kubernetes-volume-claim',
    'cluster_volume',
  ],
  cluster_elsewhere: [
    () =>
      'a worker of a load-balancing endpoint cannot be started: this server is outside of the cluster, and does not reach the addresses of its pods',
    'cluster_network',
  ],
  model_failed: [
    ({ model, problem }) => `model ${model} is not available: ${modelProblemText(problem)}`,
    ({ problem }) => MODEL_REMEDIES[problem.kind] ?? 'model_hub',
  ],
  model_gone: [({ model }) => `model ${model} was removed before a worker could get it`, 'again'],
  registry_private: [
    ({ image, host }) =>
      `image '${image}' cannot be used: its registry ${host} is not public, and the operator allows this account public ones only`,
    'registry_public',
  ],
  pull_failed: [pullText, ({ why, said }) => PULL_REMEDIES[why] ?? remedyInForeignText(said)],
  image_gone: [({ image }) => `image '${image}' of this release no longer exists`, 'image_name'],
  image_vanished: [({ image }) => `image '${image}' was downloaded but does not exist`, 'image_name'],
  image_without_command: [() => 'the image names no command, and args gives none', 'command'],
  image_program_missing: [({ said }) => `its program does not exist in the image (${said})`, 'command'],
  image_program_not_executable: [({ said }) => `its program is not executable (${said})`, 'entry_point'],
  image_of_other_processor: [
    () => 'its program is built for another kind of processor than this machine has',
    'architecture',
  ],
  init_failed: [initText, ({ problem, said }) => INIT_REMEDIES[problem] ?? remedyInForeignText(said)],
  stopped: [
    ({ during }) =>
      during === 'download'
        ? 'it was stopped while its image was being downloaded'
        : 'it was stopped before its container was started',
    'again',
  ],
  other: [({ problem }) => problem, 'other'],
}

const NO_SPACE = 'there is no space left on the disk of the container engine'

const SPAWN_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'the program that its #! line names does not exist, or its folder was removed',
  EACCES: 'permission denied',
  E2BIG: 'its arguments and variables are too long',
  EAGAIN: 'the machine has no room for more processes',
}

function otherText(other: OtherFile | null): string {
  if (other === null) return ''
  const type = other.of === 'jobs' ? 'a queue endpoint (--worker)' : 'a load-balancing endpoint (--lb)'
  return `; its ${other.name} is for ${type}`
}

function engineAwayText({ how, address, said }: EngineAbsence): string {
  const at = address === null ? '' : ` at ${address}`
  switch (how) {
    case 'not_found':
      return `the container engine is away: none was found${at}; start Docker or Podman, or give --docker`
    case 'lost':
      return `the container engine is away: the connection to ${address} was lost`
    case 'unreachable':
      return `the container engine cannot be reached${at}: ${said}`
    case 'unresponsive':
      return `the container engine does not answer${address === null ? '' : ` as it should${at}`}: ${said}`
    case 'overloaded':
      return `the container engine is overloaded or shuts down: ${said}`
  }
}

const PULL_REMEDIES: Readonly<Partial<Record<PullProblem, StartRemedy>>> = {
  disk_full: 'disk',
  download_limit: 'download_limit',
  other_processor: 'architecture',
  credential_missing: 'credential',
  credential_refused: 'credential',
  not_found: 'image_name',
  not_found_or_private: 'credential',
  not_found_for_credential: 'credential',
  unreachable: 'registry',
  stalled: 'registry',
  engine_away: 'engine',
}

function pullText({ image, host, why, said }: StartFailures['pull_failed']): string {
  const reason = pullReason(why, host)
  const words = [reason, said === '' ? null : reason === null ? said : `(${said})`].filter(part => part !== null)
  return `image '${image}' cannot be downloaded: ${words.length === 0 ? NO_WORDS : words.join(' ')}`
}

const NO_WORDS = 'the log of the server has the reason'

/** Null if the foreign text is the only known fact. */
function pullReason(why: PullProblem, host: string): string | null {
  switch (why) {
    case 'disk_full':
      return NO_SPACE
    case 'download_limit':
      return `${host} allows no more downloads for now`
    case 'other_processor':
      return 'it was not built for a machine of this kind'
    case 'credential_missing':
      return `${host} requires a credential, and the template has none`
    case 'credential_refused':
      return `${host} does not accept the credential of the template`
    case 'not_found':
      return `${host} has no such image`
    case 'not_found_or_private':
      return `${host} has no such image, or it is private and the template names no credential`
    case 'not_found_for_credential':
      return `${host} has no such image, or not for the credential of the template`
    case 'unreachable':
      return `${host} cannot be reached`
    case 'stalled':
    case 'engine_away':
    case 'unknown':
      return null
  }
}

const MODEL_REMEDIES: Readonly<Partial<Record<ModelProblem['kind'], StartRemedy>>> = {
  not_found: 'model_name',
  token_missing: 'model_token',
  token_refused: 'model_token',
  access_refused: 'model_token',
  file_name_refused: 'model_files',
  too_many_files: 'model_files',
  cache_full: 'model_space',
  disk_full: 'model_space',
  disk_failed: 'model_space',
}

const INIT_REMEDIES: Readonly<Partial<Record<StartFailures['init_failed']['problem'], StartRemedy>>> = {
  missing: 'command',
  not_executable: 'entry_point',
  other_processor: 'architecture',
}

function initText({ program: name, problem, said, architecture }: StartFailures['init_failed']): string {
  const program = name === null ? 'its program' : `its program '${name}'`
  switch (problem) {
    case 'missing':
      return `${program} does not exist in the image, or the program that its #! line names does not`
    case 'not_executable':
      return `${program} is not executable`
    case 'other_processor':
      return `${program} is not a program for this machine (${architecture})`
    case 'unknown':
      return `${program} could not be started: ${said}`
  }
}

/**
 * A failure for accounts other than the operator's: without the engine's text about a registry. That text may be
 * the response of another service that only the engine reaches.
 */
export function withoutRegistryWords(failure: StartFailure): StartFailure {
  return failure.kind === 'pull_failed' && failure.said !== '' ? { ...failure, said: '' } : failure
}

/** A failure as a sentence for people. */
export function startFailureText(failure: StartFailure): string {
  const [text] = RULES[failure.kind]
  return (text as (failure: StartFailure) => string)(failure)
}

/** The remedy for a failure, and its cause for people. */
export function startRemedy(failure: StartFailure): (typeof START_REMEDIES)[StartRemedy] {
  const [, remedy] = RULES[failure.kind]
  const name = typeof remedy === 'string' ? remedy : (remedy as (failure: StartFailure) => StartRemedy)(failure)
  return START_REMEDIES[name]
}
