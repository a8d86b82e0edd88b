/** The remedy where no worker can be started, and the cause for people. */

/** Why no worker can be started, as one word of {@link WAIT_CAUSES}. */
export type StartCause =
  | 'image_error'
  | 'model_error'
  | 'engine_away'
  | 'cluster_away'
  | 'secret_missing'
  | 'volume_missing'
  | 'settings_invalid'

interface Remedy {
  readonly cause: StartCause
  readonly advice: string
  /** Whether a retry is of no use before a person has changed something. */
  readonly lasts: boolean
}

function passing(advice: string, cause: StartCause = 'image_error'): Remedy {
  return { cause, advice, lasts: false }
}

function lasting(advice: string, cause: StartCause = 'image_error'): Remedy {
  return { cause, advice, lasts: true }
}

/** The remedies by what has to be put right. */
export const START_REMEDIES = {
  engine: passing(
    'start the container engine (systemctl start docker) and see that this server may use its socket',
    'engine_away',
  ),
  cluster: passing(
    'see that the API of the cluster runs and that this server reaches it (kubectl get pods with the same configuration)',
    'cluster_away',
  ),
  cluster_volume: passing(
    'make a claim that many nodes can mount (ReadWriteMany) and start the server with --kubernetes-volume-claim <name>',
    'volume_missing',
  ),
  cluster_network: lasting(
    'run the server in the cluster (deploy/helm), or give --kubernetes-pods-reachable where this machine has a route to the pods',
  ),
  secrets: passing(
    'create the secrets (runyard secrets create), or take them out of the environment',
    'secret_missing',
  ),
  settings: passing(
    'correct the variable in the environment of the endpoint or of its template, or the secret that it names',
    'settings_invalid',
  ),
  volume: passing('create a network volume and name it in networkVolumes of the endpoint', 'volume_missing'),
  engine_setting: lasting(
    'start a container engine and the server anew, or use an image dir:<folder>, which needs none',
  ),
  amd_driver: passing("load the driver amdgpu on the engine's machine, and see that /dev/kfd is there"),
  podman: passing('use a newer Podman, or Docker (--docker names the engine)'),
  container_init: passing('install catatonit where the engine runs'),
  local_engine: passing(
    'use an engine of this machine (--docker), or run the folder without a container (image dir:<folder>)',
  ),
  architecture: lasting(
    'build the image for the processor of this machine (docker build --platform linux/amd64 or linux/arm64)',
  ),
  credential: lasting(
    'save a registry credential that may read the image, name it in "registry" of the template or endpoint, and check the name of the image',
  ),
  registry_public: lasting(
    'push the image to a public registry, or ask the operator to allow this one (--private-registry)',
  ),
  registry: passing(
    'see that this machine reaches the registry (name, network, proxy, certificate), or load the image by hand (docker load)',
  ),
  model_name: lasting('check the name and the revision in modelReferences of the endpoint', 'model_error'),
  model_token: lasting(
    'save a token that may read the model as a secret, and name it in the environment of the endpoint: HF_TOKEN={{ RUNPOD_SECRET_<name> }}',
    'model_error',
  ),
  model_files: lasting('choose another model: this one cannot be kept safely', 'model_error'),
  model_space: passing(
    'raise --model-cache-size, free disk space, or remove models (runyard models list, runyard models remove)',
    'model_error',
  ),
  model_hub: passing('see that this machine reaches the hub (network, proxy, --hf-endpoint)', 'model_error'),
  access: passing('give the user of the server access (chown or chmod), or start the server as the owner'),
  handler: lasting('put such a file into the folder, or name a command: in args, or behind -- of runyard serve'),
  command: lasting('name a command in args that exists in the image'),
  image_name: lasting('check the name and the tag of the image, and that it was pushed or built on this machine'),
  entry_point: lasting(
    'make the entry point executable (chmod +x, and a first line #! that names its interpreter), or name another command in args',
  ),
  disk: passing('free disk space where images and containers are kept (docker system df shows what takes it)'),
  gpu_toolkit: passing("install the GPU vendor's container toolkit for the engine (runyard doctor checks it)"),
  download_limit: passing('wait, or save a registry credential, for which the registry allows more downloads'),
  memory: passing('choose a CPU flavor with more memory'),
  process_root: lasting('start the server with --process-root <folder> that has it'),
  other: passing('correct it and save the template or the endpoint again'),
} as const satisfies Record<string, Remedy>

/** Whether what runs workers is away, so that nothing is wrong with what they run and any of them may start when it is back. */
export function isAwayCause(cause: StartCause): boolean {
  return cause === 'engine_away' || cause === 'cluster_away'
}

/** A key of {@link START_REMEDIES}. */
export type StartRemedy = keyof typeof START_REMEDIES

/** How much of a text is read; all of them come from outside. */
const MAX_READ = 8_000

/** Words of container engines, registries and their clients. The first that fits counts. */
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

/** What helps against what a container engine or a registry says. */
export function remedyInForeignText(text: string): StartRemedy {
  const read = text.slice(0, MAX_READ)
  return FOREIGN_WORDS.find(([words]) => words.test(read))?.[1] ?? 'other'
}
