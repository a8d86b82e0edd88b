/** Parts of workers of apps in containers beside the runtime: their image, their build, and a way to the server. */
import { runsApp, runtimeImage } from '../../core/endpoints/runtime-image.ts'
import type { WorkerSpec } from '../../ports/driver.ts'

/** Places in a container. */
const ROOT = '/runyard'
const BUILD = `${ROOT}/build`
const FUNCTIONS = `${ROOT}/functions`
const TRUST = `${ROOT}/trust.pem`

/** The part of an image name that is the version of Python. */
const PYTHON_PLACE = '{python}'

/** Folders and files of this machine that the engine sees, too. */
export interface AppContainers {
  /**
   * The image in place of one of the SDK, with {@link PYTHON_PLACE}; null to run those of the SDK, which have a
   * runtime.
   */
  readonly image: string | null
  /** The socket of this server for functions: its folder, since the file is another one after a restart. */
  readonly functions: { readonly folder: string; readonly file: string }
  /** The file of the certificates that functions trust; null where they need none. */
  readonly trustFile: string | null
}

/** The parts of one worker of an app. */
export interface AppParts {
  /** The image that runs. */
  readonly image: string
  /** The program in it with its folder; null for that of the image and the args of the worker. */
  readonly program: { readonly words: readonly string[]; readonly folder: string | null } | null
  /** Folders of packages of its build, behind the runtime; null where the image has a runtime of its own. */
  readonly packages: readonly string[] | null
  /** Variables that those of its user win over. */
  readonly usual: Readonly<Record<string, string>>
  /** Variables that win. */
  readonly env: Readonly<Record<string, string>>
  readonly mounts: readonly { readonly source: string; readonly target: string }[]
}

const WORDS = ['python3', '-m', 'runpod_sdk_runtime.bootstrap']

/** The parts of a worker; null for one of no app. */
export function appParts(spec: WorkerSpec, containers: AppContainers | null): AppParts | null {
  if (containers === null || !runsApp(spec.image, spec.env)) return null
  const named = runtimeImage(spec.image)
  const build = spec.build?.folder ?? null
  const buildMount = build === null ? [] : [{ source: build, target: BUILD }]
  const buildEnv: Record<string, string> = build === null ? {} : { RUNPOD_PREBUILT_APP_DIR: BUILD }
  // A task needs the SDK, which its image has and others lack.
  if (named !== null && (containers.image === null || named.kind === 'task'))
    return { image: spec.image, program: null, packages: null, usual: {}, env: buildEnv, mounts: buildMount }
  const { functions, trustFile } = containers
  const trust: Record<string, string> = trustFile === null ? {} : { SSL_CERT_FILE: TRUST, REQUESTS_CA_BUNDLE: TRUST }
  const parts = {
    packages: build === null ? [] : [`${BUILD}/env`],
    usual: trust,
    env: { ...buildEnv, RUNYARD_FUNCTION_SOCKET: `${FUNCTIONS}/${functions.file}` },
    mounts: [
      { source: functions.folder, target: FUNCTIONS },
      ...(trustFile === null ? [] : [{ source: trustFile, target: TRUST }]),
      ...buildMount,
    ],
  }
  if (named === null) return { image: spec.image, program: null, ...parts }
  const { kind, python } = named
  return {
    image: containers.image!.replaceAll(PYTHON_PLACE, python),
    program: { words: WORDS, folder: build === null ? null : BUILD },
    ...parts,
    env: { ...parts.env, RUNPOD_RUNTIME_KIND: kind },
  }
}
