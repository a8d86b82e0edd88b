import {
  checkedText,
  flag,
  HTTP_ORIGIN,
  many,
  oneOf,
  optional,
  seconds,
  setting,
  TEXT,
  type ValueKind,
  wholeNumber,
} from './setting.ts'

/** Names of objects, and of namespaces. */
const OBJECT_NAME: ValueKind<string> = checkedText(text =>
  /^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/.test(text) ? null : 'must be a name of Kubernetes: a-z, 0-9, - and .',
)

/** The settings of workers that are pods of a cluster. */
export const KUBERNETES_SETTINGS = {
  kubernetes: {
    /** `off`, `in-cluster`, `kubeconfig`, or the address of a proxy. */
    where: setting(
      '--kubernetes',
      '<off|in-cluster|kubeconfig|url>',
      'off',
      checkedText(text =>
        /^(?:off|in-cluster|kubeconfig|http:\/\/[^/?#@\s]+)$/.test(text)
          ? null
          : 'must be off, in-cluster, kubeconfig, or the address of kubectl proxy, as http://127.0.0.1:8001',
      ),
      'run the workers of all images but dir: as pods: as a pod of the cluster itself, or as kubectl is configured',
    ),
    context: optional(
      '--kubernetes-context',
      '<name>',
      TEXT,
      "context of kubectl's configuration (default: its current one)",
    ),
    namespace: optional(
      '--kubernetes-namespace',
      '<name>',
      OBJECT_NAME,
      'namespace of the pods (default: that of the context, or of the pod of this server)',
    ),
    installation: optional(
      '--kubernetes-installation',
      '<name>',
      checkedText(text => (/^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$/.test(text) ? null : 'must be of a-z, 0-9 and -')),
      'name of this installation in a namespace, the same for all servers of a database (default: made of the database)',
    ),
    workerUrl: optional(
      '--kubernetes-worker-url',
      '<url>',
      HTTP_ORIGIN,
      'address at which pods reach the worker port of this server',
    ),
    workerHost: setting(
      '--kubernetes-worker-host',
      '<address>',
      '0.0.0.0',
      TEXT,
      'address on which this server listens for calls of pods',
    ),
    workerPort: setting(
      '--kubernetes-worker-port',
      '<number>',
      '8082',
      wholeNumber(0, 65_535),
      'port for calls of pods, which answers nothing else; 0 for the port of clients',
    ),
    /** Null for none. */
    volumeClaim: optional(
      '--kubernetes-volume-claim',
      '<name>',
      OBJECT_NAME,
      'claim that many nodes can mount, with a folder for each network volume',
    ),
    /** Null where the cache of models is not in the claim. */
    modelFolder: optional(
      '--kubernetes-model-folder',
      '<folder>',
      checkedText(text => (/^(?!\/)(?!.*\.\.)[^\s]+$/.test(text) ? null : 'must be a relative path without ..')),
      'folder of the claim that is the --model-cache of this server (default: workers download their models)',
    ),
    networkPolicy: setting(
      '--kubernetes-network-policy',
      '<open|closed|off>',
      'open',
      oneOf(['open', 'closed', 'off']),
      'what workers may reach: this server and the internet, this server alone, or what the cluster lets them',
    ),
    gpuResource: setting(
      '--kubernetes-gpu-resource',
      '<name>',
      'nvidia.com/gpu',
      checkedText(text =>
        /^[a-z0-9.-]+\/[A-Za-z0-9._-]+$/.test(text) ? null : 'must be a resource, as nvidia.com/gpu',
      ),
      'resource that stands for one whole GPU',
    ),
    /** Values of the product label, by the type of the catalog. */
    gpuProducts: many(
      '--kubernetes-gpu-product',
      '<type=label>',
      checkedText(text => (/^[^=]+=[A-Za-z0-9._-]{1,63}$/.test(text) ? null : 'must be as "NVIDIA L4=NVIDIA-L4-24GB"')),
      'value of nvidia.com/gpu.product for a type of GPU, where it is not its name with dashes; may be repeated',
      ',',
    ),
    priorityClass: optional('--kubernetes-priority-class', '<name>', OBJECT_NAME, 'priority class of the pods'),
    runtimeClass: optional('--kubernetes-runtime-class', '<name>', OBJECT_NAME, 'runtime class of the pods'),
    nodeSelector: many(
      '--kubernetes-node-selector',
      '<label=value>',
      checkedText(text => (/^[^=\s,]+=[^=\s,]*$/.test(text) ? null : 'must be as label=value')),
      'label that nodes of workers have; may be repeated',
      ',',
    ),
    tolerations: many(
      '--kubernetes-toleration',
      '<key[=value][:effect]>',
      checkedText(text =>
        /^[^=:\s,]+(?:=[^=:\s,]*)?(?::(?:NoSchedule|PreferNoSchedule|NoExecute))?$/.test(text)
          ? null
          : 'must be as key, key=value or key=value:NoSchedule',
      ),
      'taint of nodes that workers do not mind; may be repeated',
      ',',
    ),
    nodeLostMs: setting(
      '--kubernetes-node-lost',
      '<seconds>',
      '300',
      seconds(10, 86_400),
      'how long a node may be silent before its workers count as ended',
    ),
    podsReachable: flag(
      '--kubernetes-pods-reachable',
      'this server is outside of the cluster and has a route to the addresses of its pods',
    ),
  },
}
