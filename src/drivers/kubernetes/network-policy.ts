/**
 * The policy for the networks of workers' pods: their destinations and their callers, where the network of the cluster
 * heeds policies.
 */
import { isAddress } from '../../core/workers/container-reach.ts'
import { type KubernetesApi, type KubernetesObject, kubernetesError } from './api.ts'
import { NAMES, ownLabels } from './names.ts'

/** Options of a policy. */
export interface PolicyOptions {
  readonly installation: string
  readonly namespace: string
  /** `open` lets workers reach the internet, `closed` does not. */
  readonly egress: 'open' | 'closed'
  /** The address at which workers call this server, and the port on which it listens there. */
  readonly workerUrl: string
  readonly workerPort: number
  /** True where this server is a pod of the cluster. */
  readonly isInside: boolean
}

/** The labels of the pods of servers, as the chart sets them. */
const SERVER = { 'app.kubernetes.io/name': 'runyard', 'app.kubernetes.io/component': 'server' }
/**
 * Addresses that are no part of the internet: pods, services and nodes are among them, and the metadata services of
 * clouds.
 */
const PRIVATE = ['10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']
const PRIVATE_V6 = ['fc00::/7', 'fe80::/10']

/**
 * The policy of the workers of an installation. They reach this server, names, and the internet where it is open; only
 * this server reaches them.
 */
export function workerPolicy(options: PolicyOptions): Record<string, unknown> {
  const { installation, namespace, egress } = options
  const server = serverPeer(options)
  const internet = {
    to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE } }, { ipBlock: { cidr: '::/0', except: PRIVATE_V6 } }],
  }
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: policyName(installation), namespace, labels: ownLabels(installation) },
    spec: {
      podSelector: {
        matchLabels: ownLabels(installation),
        matchExpressions: [{ key: NAMES.worker, operator: 'Exists' }],
      },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [server === null ? {} : { from: [server] }],
      egress: [
        { ports: [port('UDP', 53), port('TCP', 53)] },
        { ...(server === null ? {} : { to: [server] }), ports: [port('TCP', serverPort(options))] },
        ...(egress === 'open' ? [internet] : []),
      ],
    },
  }
}

/**
 * Makes the policy, or replaces it.
 * @throws KubernetesError when this server may not, or the API is away
 */
export async function applyPolicy(api: KubernetesApi, options: PolicyOptions): Promise<void> {
  const path = `/apis/networking.k8s.io/v1/namespaces/${options.namespace}/networkpolicies`
  const body = workerPolicy(options)
  const policyPath = `${path}/${policyName(options.installation)}`
  try {
    const policy = await api.call<KubernetesObject>({ method: 'GET', path: policyPath })
    const isOurs = policy.metadata.labels?.[NAMES.installation] === options.installation
    if (isOurs) await api.call({ method: 'PUT', path: policyPath, body })
  } catch (thrown) {
    if (kubernetesError(thrown).status !== 404) throw thrown
    await api.call({ method: 'POST', path, body })
  }
}

function policyName(installation: string): string {
  return `runyard-workers-${installation}`
}

/** This server as a peer; null where no policy can name it, since it is outside and known by a name alone. */
function serverPeer({ isInside, workerUrl }: PolicyOptions): Record<string, unknown> | null {
  if (isInside) return { podSelector: { matchLabels: SERVER } }
  const { hostname } = new URL(workerUrl)
  return isAddress(hostname) ? { ipBlock: { cidr: `${hostname}/32` } } : null
}

/** A policy names the port of the pod behind a service, and of a machine outside the one that is called. */
function serverPort({ isInside, workerUrl, workerPort }: PolicyOptions): number {
  const { port: called, protocol } = new URL(workerUrl)
  if (isInside && workerPort !== 0) return workerPort
  return called === '' ? (protocol === 'https:' ? 443 : 80) : Number(called)
}

function port(protocol: 'TCP' | 'UDP', number: number): Record<string, unknown> {
  return { protocol, port: number }
}
