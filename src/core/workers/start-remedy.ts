/** The remedy if no worker can be started, and the cause for people. */

/** Reason why no worker can be started, as one word of {@link WAIT_CAUSES}. */
export type StartCause =
  | 'image_error'
  | 'model_error'
  | 'engine_away'
  | 'cluster_away'
  | 'secret_missing'
  | 'volume_missing'
  | 'settings_invalid'

/**
 * The object that a person changes so that workers start or continue: a part of the endpoint's configuration, an
 * object beside it, or an option of the server. `program` is the code of the worker; `unknown` may be anything,
 * hardware included; `machine` is for the operator. A remedy without a fitting object has no fix.
 */
export type Fix =
  | 'image'
  | 'folder'
  | 'program'
  | 'command'
  | 'environment'
  | 'health'
  | 'start_time'
  | 'secrets'
  | 'secret_value'
  | 'token'
  | 'volume'
  | 'no_volume'
  | 'models'
  | 'gpus'
  | 'gpu_memory'
  | 'memory'
  | 'disk'
  | 'credential'
  | 'one_worker'
  | 'machine'
  | 'unknown'
  /** The options follow `runyard serve`; `<...>` stands for a value that a person must choose. */
  | { readonly serve: readonly string[]; readonly title: string }
  | { readonly variable: string; readonly value: string; readonly title: string }

/** The remedy of a failure: a sentence for people, and the objects to change, the most likely one first. */
export interface Remedy {
  readonly advice: string
  readonly fixes: readonly Fix[]
}

interface StartRemedyRule extends Remedy {
  readonly cause: StartCause
  /** True if a retry is of no use before a person changes something. */
  readonly lasts: boolean
}

function passing(advice: string, fixes: readonly Fix[], cause: StartCause = 'image_error'): StartRemedyRule {
  return { cause, advice, fixes, lasts: false }
}

function lasting(advice: string, fixes: readonly Fix[], cause: StartCause = 'image_error'): StartRemedyRule {
  return { cause, advice, fixes, lasts: true }
}

const WITH_ENGINE: Fix = { serve: ['--docker', 'auto'], title: 'Start the server with a container engine' }
const WITH_FOLDERS: Fix = { serve: ['--process-root', '<folder>'], title: 'Start the server with the folder' }

/** Remedies by the object to correct. */
export const START_REMEDIES = {
  engine: passing(
    'start the container engine (systemctl start docker) and check that this server may use its socket',
    ['machine'],
    'engine_away',
  ),
  cluster: passing(
    'check that the API of the cluster runs and that this server reaches it (kubectl get pods with the same configuration)',
    ['machine'],
    'cluster_away',
  ),
  cluster_volume: passing(
    'create a claim that many nodes can mount (ReadWriteMany) and start the server with --kubernetes-volume-claim <name>',
    [
      { serve: ['--kubernetes-volume-claim', '<name>'], title: 'Start the server with a claim for volumes' },
      'no_volume',
    ],
    'volume_missing',
  ),
  cluster_network: lasting(
    'run the server in the cluster (deploy/helm), or give --kubernetes-pods-reachable where this machine has a route to the pods',
    [{ serve: ['--kubernetes-pods-reachable'], title: 'Start the server where it reaches the pods' }],
  ),
  secrets: passing(
    'create the secrets (runyard secrets create), or remove them from the environment',
    ['secrets', 'environment'],
    'secret_missing',
  ),
  settings: passing(
    'correct the variable in the environment of the endpoint or of its template, or the secret that it names',
    ['environment', 'secret_value'],
    'settings_invalid',
  ),
  volume: passing(
    'create a network volume and name it in networkVolumes of the endpoint',
    ['volume'],
    'volume_missing',
  ),
  engine_setting: lasting(
    'start the server with a container engine (--docker auto), or run a folder without a container (image dir:<folder>)',
    [WITH_ENGINE, 'folder'],
  ),
  amd_driver: passing("load the driver amdgpu on the engine's machine, and check that /dev/kfd exists", ['machine']),
  podman: passing('use a newer Podman, or Docker (--docker names the engine)', ['machine']),
  container_init: passing('install catatonit where the engine runs', ['machine']),
  local_engine: passing(
    'use an engine of this machine (--docker), or run the folder without a container (image dir:<folder>)',
    ['machine', 'folder'],
  ),
  architecture: lasting(
    'build the image for the processor of this machine (docker build --platform linux/amd64 or linux/arm64)',
    ['image'],
  ),
  credential: lasting(
    'save a registry credential that may read the image, name it in "registry" of the template or endpoint, and check the name of the image',
    ['credential', 'image'],
  ),
  registry_public: lasting(
    'push the image to a public registry, or ask the operator to allow this one (--private-registry)',
    ['image'],
  ),
  registry: passing(
    'check that this machine reaches the registry (name, network, proxy, certificate), or load the image by hand (docker load)',
    ['machine'],
  ),
  model_name: lasting('check the name and the revision in modelReferences of the endpoint', ['models'], 'model_error'),
  model_token: lasting(
    'save a token that may read the model as a secret, and name it in the environment of the endpoint: HF_TOKEN={{ RUNPOD_SECRET_<name> }}',
    ['token'],
    'model_error',
  ),
  model_files: lasting('choose another model: this one cannot be kept safely', ['models'], 'model_error'),
  model_space: passing(
    'raise --model-cache-size, free disk space, or remove models (runyard models list, runyard models remove)',
    ['machine'],
    'model_error',
  ),
  model_hub: passing(
    'check that this machine reaches the hub (network, proxy, --hf-endpoint)',
    ['machine'],
    'model_error',
  ),
  access: passing('give the user of the server access (chown or chmod), or start the server as the owner', ['machine']),
  handler: lasting('add such a file to the folder, or name a command: in args, or behind -- of runyard serve', [
    'command',
  ]),
  command: lasting('name a command in args that exists in the image', ['command']),
  image_name: lasting('check the name and the tag of the image, and that it was pushed or built on this machine', [
    'image',
  ]),
  entry_point: lasting(
    'make the entry point executable (chmod +x, and a first line #! that names its interpreter), or name another command in args',
    ['command'],
  ),
  disk: passing('free disk space where images and containers are stored (docker system df shows their sizes)', [
    'machine',
  ]),
  gpu_toolkit: passing("install the GPU vendor's container toolkit for the engine (runyard doctor checks it)", [
    'machine',
  ]),
  download_limit: passing('wait, or save a registry credential, for which the registry allows more downloads', [
    'credential',
  ]),
  memory: passing('choose a CPU flavor with more memory', ['memory']),
  process_root: lasting('start the server with --process-root <folder> that has it', [WITH_FOLDERS, 'image']),
  processes: lasting('start the server without --processes off, or run an image in a container', [
    { serve: ['--processes', 'auto'], title: 'Start the server with folders as processes' },
    'image',
  ]),
  machine: passing('check the machine (runyard doctor); the next start tries again', ['machine']),
  python: passing(
    'install that Python on this machine (uv python install <version>), or use another one (rp flash deploy --python-version)',
    ['machine', 'image'],
  ),
  packages: passing(
    'check that this machine reaches the registry of Python packages (network, proxy, settings of pip), and that its Python has venv and pip',
    ['machine'],
  ),
  folder: passing('fix it in the folder; the next start tries again', ['program']),
  again: passing('nothing; the next start tries again', []),
  other: passing('correct it and save the template or the endpoint again', ['image']),
} as const satisfies Record<string, StartRemedyRule>

/**
 * True if the engine or cluster that runs workers is away: the workers are not at fault, and any of them may start
 * when it is back.
 */
export function isAwayCause(cause: StartCause): boolean {
  return cause === 'engine_away' || cause === 'cluster_away'
}

/** A key of {@link START_REMEDIES}. */
export type StartRemedy = keyof typeof START_REMEDIES

/** Limit of read characters of a text; all of them come from outside. */
const MAX_READ = 8_000

/** Phrases of container engines, registries and their clients. The first match wins. */
const FOREIGN_WORDS: readonly (readonly [RegExp, StartRemedy])[] = [
  [/docker daemon|(docker|podman)\S{0,40}\.sock/i, 'engine'],
  [/no matching manifest|exec format error|wrong architecture|does not match the .{0,80}platform/i, 'architecture'],
  [
    /unauthorized|authentication required|incorrect username or password|access denied|no basic auth|\b40[13]\b|forbidden/i,
    'credential',
  ],
  [
    /no such host|name resolution|i\/o timeout|timeout exceeded|deadline exceeded|network is unreachable|connection refused|TLS handshake|x509|ENOTFOUND|ECONNREFUSED|EAI_AGAIN/i,
    'registry',
  ],
  [/executable file not found|not found in \$?PATH|no such file or directory/i, 'command'],
  [
    /manifest unknown|manifest .{0,200}not found|no such image|repository .{0,200}not found|not found: manifest|image .{0,200}(does not exist|not found)/i,
    'image_name',
  ],
  [/permission denied|not executable|is a directory|EACCES/i, 'entry_point'],
  [/no space left on|ENOSPC|disk quota/i, 'disk'],
  [/could not select device driver|nvidia-container|NVIDIA Container Toolkit|\bCDI\b/i, 'gpu_toolkit'],
  [/toomanyrequests/i, 'download_limit'],
]

/** The remedy for a text of a container engine or a registry. */
export function remedyInForeignText(text: string): StartRemedy {
  const read = text.slice(0, MAX_READ)
  return FOREIGN_WORDS.find(([words]) => words.test(read))?.[1] ?? 'other'
}
