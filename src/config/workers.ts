/** The settings of workers: their folders, their number, where they run, and their models. */
import { PRIORITIES } from '../core/endpoints/endpoint.ts'
import { PAUSE_RULES, PLACEMENT_RULES } from '../core/placement/placement-input.ts'
import { FREEZE_RULES } from '../core/scaling/frozen-plan.ts'
import {
  ENGINE_ADDRESS,
  FACTOR,
  flag,
  HOST_NAME,
  HTTP_URL,
  many,
  megabytes,
  oneOf,
  optional,
  PATH,
  seconds,
  setting,
  TEXT,
  wholeNumber,
  wholeNumberOr,
} from './setting.ts'

/** Workers at once over all endpoints where `--max-workers` is not given. */
export const MAX_WORKERS = 64

/** The settings of folders whose workers are processes. */
export const PROCESS_ROOT_SETTINGS = {
  processRoots: many('--process-root', '<folder>', PATH, 'folder below which dir: images may lie; may be repeated'),
}

/** The settings of folders that become endpoints. */
export const FOLDER_SETTINGS = {
  workers: many('--worker', '<folder>', PATH, 'run the handler in this folder as an endpoint; may be repeated'),
  /** Null for the GPUs of the machine for new endpoints, and what they have for others. */
  folderGpu: optional(
    '--gpu',
    '<any|none|names>',
    TEXT,
    'GPUs for the folders of --worker and --lb: any of this machine, none, or names such as "RTX 4090" or ADA_24 (default: one where there is one)',
  ),
  folderGpuCount: optional('--gpus', '<number>', wholeNumber(1, 64), 'GPUs of each worker of these folders'),
  folderGpuMemoryGb: optional(
    '--gpu-memory',
    '<GB|auto>',
    wholeNumberOr('auto', 0, 1_024),
    'share of the memory of one GPU for each worker of these folders; auto to learn it from what workers use; 0 for whole GPUs',
  ),
  folderPriority: optional(
    '--priority',
    '<low|normal|high>',
    oneOf(PRIORITIES),
    'order of these folders beside other endpoints where the machine has too little room for all',
  ),
  folderPreemptible: optional(
    '--preemptible',
    '<true|false>',
    oneOf(['true', 'false']),
    'workers of these folders may be paused in the middle of a job for an endpoint of higher priority',
  ),
  folderWatch: flag(
    '--watch',
    'replace the workers of these folders after their jobs when a file in the folder changes',
  ),
  folderSetup: flag(
    '--setup',
    'install the packages of these folders where they are missing or their list has changed: with uv where it is there, else venv and pip; npm',
  ),
  folderCommand: optional(
    '--command',
    '<text>',
    TEXT,
    'command of the workers of the folder, where it is neither a handler nor a server; also as -- <command>',
  ),
  container: flag('--container', 'build the Dockerfile of each --worker folder and run the folder in containers'),
  sample: flag('--sample', 'run the sample handler as an endpoint named hello-node'),
}

/** The settings of the number of workers, and of their places on the machine. */
export const SCALING_SETTINGS = {
  /** Null for {@link MAX_WORKERS}; a number is the limit of each folder's endpoint too. */
  maxWorkers: optional(
    '--max-workers',
    '<number>',
    wholeNumber(1, 10_000),
    `maximum workers at once, over all endpoints, and of the endpoint of each --worker or --lb folder (default: ${MAX_WORKERS}, and 3)`,
  ),
  startAware: flag(
    '--start-aware',
    'count the queue delay from when a further worker could be ready, so that none is started that would come too late to help',
  ),
  rolloutJudge: setting(
    '--rollout-judge',
    '<on|off>',
    'on',
    oneOf(['on', 'off']),
    'stop a new release that fails clearly more jobs or requests than the last good one, and let that one go on',
  ),
  /** The rules by which workers share the machine. */
  placing: {
    requireGpu: flag(
      '--require-gpu',
      'let workers of GPU endpoints wait where the machine has no GPU at all, instead of running on the CPU',
    ),
    dwellMs: setting(
      '--dwell',
      '<seconds>',
      String(PLACEMENT_RULES.dwellMs / 1000),
      seconds(0, 86_400),
      'how long a worker stays at least before it makes room for another endpoint when it is idle',
    ),
    cpuOvercommit: setting(
      '--cpu-overcommit',
      '<factor>',
      String(PLACEMENT_RULES.cpuOvercommit),
      FACTOR,
      'how many times the vCPUs of the machine may be promised to containers',
    ),
    memoryOvercommit: setting(
      '--memory-overcommit',
      '<factor>',
      String(PLACEMENT_RULES.memoryOvercommit),
      FACTOR,
      'how many times the memory of the machine may be promised to containers',
    ),
  },
  /** The rules by which workers are paused for endpoints of higher priority. */
  pausing: {
    maxPauseMs: setting(
      '--max-pause',
      '<seconds>',
      String(PAUSE_RULES.maxPauseMs / 1000),
      seconds(1, 7 * 86_400),
      'how long a worker is paused at most for an endpoint of higher priority before it has a right to room',
    ),
    maxPaused: setting(
      '--max-paused',
      '<number>',
      String(PAUSE_RULES.maxPaused),
      wholeNumber(0, 1_000),
      'how many workers may be paused at once; 0 for none',
    ),
    acrossAccounts: flag(
      '--pause-across-accounts',
      'let endpoints of one account have workers of another account paused, where its endpoint allows pauses',
    ),
  },
  /** The time for which frozen workers are kept. */
  freezing: {
    keepMs: setting(
      '--frozen-keep',
      '<seconds>',
      String(FREEZE_RULES.keepMs / 1000),
      seconds(1, 30 * 86_400),
      'how long an idle worker of an endpoint with FlashBoot stays frozen at most before it ends',
    ),
    minMemoryPercent: setting(
      '--frozen-min-memory',
      '<percent>',
      String(FREEZE_RULES.minMemoryPercent),
      wholeNumber(0, 90),
      'percentage of the memory of this machine below which frozen workers end, the one frozen longest first',
    ),
    suspendedBytes: optional(
      '--suspended-memory',
      '<megabytes>',
      megabytes(0, 100_000_000),
      'memory of this machine for workers whose memory on a GPU is given back while they are frozen; 0 for none; by default half of what is free',
    ),
  },
}

/** The settings of the relay, and of workers in containers. */
export const CONTAINER_SETTINGS = {
  directWorkers: flag(
    '--direct-workers',
    'give workers the address of the server itself, without the relay that holds their calls while it is away',
  ),
  docker: setting(
    '--docker',
    '<auto|off|url>',
    'auto',
    ENGINE_ADDRESS,
    'container engine, as unix:///var/run/docker.sock; auto is DOCKER_HOST or the usual places of Docker and Podman',
  ),
  /** Null for a network of the installation's own. */
  dockerNetwork: optional(
    '--docker-network',
    '<name>',
    TEXT,
    'network of the container engine for workers (default: one that isolates them from each other)',
  ),
  /** Null for what can be found out. */
  dockerWorkerAddress: optional(
    '--docker-worker-address',
    '<address>',
    HOST_NAME,
    'address or name of this machine that workers in containers call (default: found out)',
  ),
  /** Has a place for the version of Python, or is `sdk`. */
  appImage: setting(
    '--app-image',
    '<image|sdk>',
    'python:{python}-slim',
    TEXT,
    'image of containers for functions of apps, with {python} for the version; sdk for the images of the SDK',
  ),
}

/** The settings of the isolation of workers that are processes. */
export const PROCESS_SETTINGS = {
  workerSandbox: setting(
    '--worker-sandbox',
    '<auto|required|off>',
    'auto',
    oneOf(['auto', 'required', 'off']),
    'run dir: workers in a cage (bubblewrap): where this machine can make one, always, or never',
  ),
  workerNetwork: setting(
    '--worker-network',
    '<open|server|shared>',
    'open',
    oneOf(['open', 'server', 'shared']),
    'what dir: workers in a cage reach: the server and the outside, the server alone, or all that this machine does',
  ),
  workerReadable: many(
    '--worker-readable',
    '<folder>',
    PATH,
    'folder that dir: workers in a cage may read, such as one with models; may be repeated',
  ),
  workerWritable: many(
    '--worker-writable',
    '<folder>',
    PATH,
    'folder that dir: workers in a cage share and may change, such as one for results; may be repeated',
  ),
  /** Null for half of what is free, 0 for no limit. */
  workerDiskGb: optional(
    '--worker-disk',
    '<GB>',
    wholeNumber(0, 1_000_000),
    'how much a dir: worker in a cage may write to its own folders; 0 for no limit (default: half of what is free, at most 100)',
  ),
  /** Null for half of what is free, 0 for no limit. */
  workerCacheGb: optional(
    '--worker-cache',
    '<GB>',
    wholeNumber(0, 1_000_000),
    'how much the cache that the dir: workers of an endpoint share may hold; 0 for no limit (default: half of what is free)',
  ),
}

/** The settings of the models that workers find on their disk. */
export const MODEL_SETTINGS = {
  /** Null for one in the data directory. */
  modelCache: optional(
    '--model-cache',
    '<folder>',
    PATH,
    'folder for the models that endpoints name in modelReferences (default: models in the data directory)',
  ),
  /** Null for half of what is free, at most 200. */
  modelCacheGb: optional(
    '--model-cache-size',
    '<GB>',
    wholeNumber(1, 1_000_000),
    'how much it may hold; what was used longest ago goes first (default: half of what is free, at most 200)',
  ),
  modelHub: setting(
    '--hf-endpoint',
    '<url>',
    'https://huggingface.co',
    HTTP_URL,
    'hub of these models, such as a mirror of Hugging Face',
  ),
}
