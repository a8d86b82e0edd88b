/** The way to a cluster: from a configuration of kubectl, or as a pod of the cluster itself. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../core/errors.ts'
import { withoutEnd } from '../../core/text-parts.ts'
import type { Clock } from '../../ports/clock.ts'

/** An address of an API, and who calls it. */
export interface ClusterAccess {
  /** The origin of the API, and the path before it where there is one; no slash at the end. */
  readonly server: string
  /** The namespace that is used where none is named. */
  readonly namespace: string
  /** Options of TLS. */
  readonly tls: {
    readonly ca?: string
    readonly cert?: string
    readonly key?: string
    readonly servername?: string
    readonly rejectUnauthorized?: boolean
  }
  /** The token of the caller, null for none; `fresh` reads it again, `kept` from time to time. */
  token(how: 'kept' | 'fresh'): string | null
  /** True where this server is a pod of the cluster. */
  readonly isInside: boolean
}

/** Options of {@link clusterAccess}. */
export interface AccessOptions {
  /** `in-cluster`, `kubeconfig`, or the address of a proxy (`kubectl proxy`) without TLS. */
  readonly where: string
  /** The context of the configuration; null for its current one. */
  readonly context: string | null
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  /** The folder of the service account of a pod; the usual one by default. */
  readonly accountFolder?: string
  /** Runs kubectl and returns its output; by default the real program. */
  readonly kubectl?: (args: readonly string[]) => string
}

const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Time for which a token of a file is kept: the cluster replaces it long before it ends. */
const TOKEN_MS = 60_000
const KUBECTL_MS = 20_000
const DEFAULT_NAMESPACE = 'default'

/** Reads the way to a cluster. @throws AppError `invalid` with the missing part */
export function clusterAccess(options: AccessOptions): ClusterAccess {
  const { where } = options
  if (where === 'in-cluster') return insideAccess(options)
  if (where === 'kubeconfig') return configuredAccess(options)
  return { server: where, namespace: DEFAULT_NAMESPACE, tls: {}, token: () => null, isInside: false }
}

function insideAccess({ env, clock, accountFolder = ACCOUNT_FOLDER }: AccessOptions): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env
  if (host === undefined || port === undefined) {
    throw new AppError('invalid', '--kubernetes in-cluster is for a server that is a pod itself, and this one is none')
  }
  const read = (name: string) => {
    try {
      return readFileSync(join(accountFolder, name), 'utf8').trim()
    } catch {
      throw new AppError(
        'invalid',
        `the service account of this pod has no ${name}: its pod needs automountServiceAccountToken`,
      )
    }
  }
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: read('namespace'),
    tls: { ca: read('ca.crt') },
    token: tokenFile(() => read('token'), clock),
    isInside: true,
  }
}

/** A token in a file that is replaced from time to time. */
function tokenFile(read: () => string, clock: Clock): ClusterAccess['token'] {
  let token = read()
  let readMs = clock.monotonic()
  return how => {
    if (how === 'fresh' || clock.monotonic() - readMs >= TOKEN_MS) {
      try {
        token = read()
      } catch {
        // The cached one may still be valid.
      }
      readMs = clock.monotonic()
    }
    return token
  }
}

/** The parts of a configuration of kubectl that are used. */
interface Kubeconfig {
  readonly 'current-context'?: string
  readonly contexts?: readonly { readonly context?: { readonly namespace?: string } }[]
  readonly clusters?: readonly { readonly cluster?: KubeconfigCluster }[]
  readonly users?: readonly { readonly user?: KubeconfigUser }[]
}

interface KubeconfigCluster {
  readonly server?: string
  readonly 'certificate-authority-data'?: string
  readonly 'certificate-authority'?: string
  readonly 'insecure-skip-tls-verify'?: boolean
  readonly 'tls-server-name'?: string
}

interface KubeconfigUser {
  readonly token?: string
  readonly tokenFile?: string
  readonly username?: string
  readonly 'client-certificate-data'?: string
  readonly 'client-certificate'?: string
  readonly 'client-key-data'?: string
  readonly 'client-key'?: string
  readonly exec?: { readonly command?: string }
  readonly 'auth-provider'?: { readonly name?: string }
}

function configuredAccess({ context, env, clock, kubectl = runKubectl }: AccessOptions): ClusterAccess {
  const config = readKubeconfig(context, env, kubectl)
  const cluster = config.clusters?.[0]?.cluster
  const user = config.users?.[0]?.user ?? {}
  if (cluster?.server === undefined) {
    throw new AppError(
      'invalid',
      `the configuration of kubectl names no cluster${context === null ? '' : ` for the context ${context}`}`,
    )
  }
  const helper = user.exec?.command ?? user['auth-provider']?.name
  if (helper !== undefined) {
    throw new AppError(
      'invalid',
      `the user of the configuration of kubectl gets its credentials from the program '${helper}', which is a matter of kubectl: run kubectl proxy and give --kubernetes http://127.0.0.1:8001, or use a service account`,
    )
  }
  const pem = (data: string | undefined, file: string | undefined, part: string) =>
    data !== undefined
      ? Buffer.from(data, 'base64').toString('utf8')
      : file === undefined
        ? undefined
        : readPart(file, part)
  const ca = pem(cluster['certificate-authority-data'], cluster['certificate-authority'], 'certificate authority')
  const cert = pem(user['client-certificate-data'], user['client-certificate'], 'client certificate')
  const key = pem(user['client-key-data'], user['client-key'], 'client key')
  const { tokenFile: file, token = null } = user
  return {
    server: withoutEnd(cluster.server, '/'),
    namespace: config.contexts?.[0]?.context?.namespace ?? DEFAULT_NAMESPACE,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(cluster['tls-server-name'] === undefined ? {} : { servername: cluster['tls-server-name'] }),
      ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
    },
    token: file === undefined ? () => token : tokenFile(() => readPart(file, 'token').trim(), clock),
    isInside: false,
  }
}

/** The configuration of one context, as kubectl merges it. Without kubectl a file is read that is JSON. */
function readKubeconfig(
  context: string | null,
  env: AccessOptions['env'],
  kubectl: (args: readonly string[]) => string,
): Kubeconfig {
  const args = ['config', 'view', '--raw', '--minify', '-o', 'json']
  try {
    return JSON.parse(kubectl(context === null ? args : [...args, '--context', context])) as Kubeconfig
  } catch (thrown) {
    const file = jsonFile(env.KUBECONFIG)
    if (file !== null && context === null) return file
    const { code, stderr = '' } = thrown as NodeJS.ErrnoException & { stderr?: string }
    const problem =
      code === 'ENOENT'
        ? 'kubectl is not installed'
        : String(stderr).trim().split('\n')[0] || 'kubectl gave no configuration'
    throw new AppError('invalid', `the configuration of the cluster cannot be read: ${problem} (kubectl config view)`)
  }
}

function jsonFile(path: string | undefined): Kubeconfig | null {
  if (path === undefined || path.includes(':')) return null
  try {
    const config = JSON.parse(readFileSync(path, 'utf8')) as Kubeconfig
    const isUnambiguous = [config.clusters, config.users, config.contexts].every(list => (list?.length ?? 0) <= 1)
    return isUnambiguous ? config : null
  } catch {
    return null
  }
}

function readPart(file: string, part: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new AppError('invalid', `the ${part} that the configuration of kubectl names cannot be read: ${file}`)
  }
}

function runKubectl(args: readonly string[]): string {
  return execFileSync('kubectl', args, {
    encoding: 'utf8',
    timeout: KUBECTL_MS,
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 4 * 1024 * 1024,
  })
}
