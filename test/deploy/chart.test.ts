/** The chart, as Helm renders it: valid objects, no secret in them, and no right that the server does not use. */
import assert from 'node:assert/strict'
import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'
import { readConfig, SETTINGS, strayVariables } from '../../src/config/config.ts'
import { CHART, helm, noHelm, objectsFile, render, template, type Values } from '../support/helm.ts'
import { type KubernetesObject, openObjectCheck } from '../support/kubernetes-objects.ts'
import { temporaryFolder } from '../wire/support/cleanup.ts'

const EVERYTHING = {
  publicUrl: 'https://runyard.example.com',
  trustedProxies: ['10.42.0.0/16'],
  allowedHosts: ['gpu.example.com'],
  settings: { RUNYARD_LOG_LEVEL: 'debug', RUNYARD_MAX_WORKERS: 200, RUNYARD_KUBERNETES_NODE_LOST: 120 },
  certificateAuthorities: { configMap: 'authorities', key: 'all.pem' },
  extraEnv: [
    { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: 'https://collector.example.com:4318' },
    { name: 'OTEL_EXPORTER_OTLP_HEADERS', valueFrom: { secretKeyRef: { name: 'collector', key: 'headers' } } },
    { name: 'RUNYARD_BACKUP_PASSPHRASE', valueFrom: { secretKeyRef: { name: 'backups', key: 'passphrase' } } },
  ],
  extraVolumes: [{ name: 'backups', persistentVolumeClaim: { claimName: 'backups' } }],
  extraVolumeMounts: [{ name: 'backups', mountPath: '/backups' }],
  image: { repository: 'registry.example.com/runyard', tag: '1.2.3', pullSecrets: ['pulls'] },
  workers: {
    namespace: 'gpu-workers',
    volumeClaim: 'shared',
    priorityClass: 'low',
    runtimeClass: 'nvidia',
    installation: 'gpus',
  },
  ingress: { enabled: true, className: 'traefik', host: 'runyard.example.com', tlsSecret: 'cert' },
  service: { type: 'LoadBalancer', port: 443, annotations: { a: 'b' } },
  serviceAccount: { annotations: { a: 'b' } },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'control', operator: 'Exists' }],
  priorityClass: 'system-cluster-critical',
  podLabels: { team: 'ml' },
  podAnnotations: { note: 'x' },
  spreadStrictly: true,
  networkPolicy: {
    workers: { internet: false, extraEgress: [{ to: [{ ipBlock: { cidr: '10.9.0.0/16' } }] }] },
    server: { enabled: true, from: [{ namespaceSelector: {} }] },
  },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, keySecret: { name: 'metrics', key: 'key' } },
}
/** Settings that say how a server reaches a cluster, which the chart knows. */
const NOT_IN_A_CLUSTER = [
  'RUNYARD_PORT',
  'RUNYARD_TLS_CERT',
  'RUNYARD_TLS_KEY',
  'RUNYARD_KUBERNETES_CONTEXT',
  'RUNYARD_KUBERNETES_WORKER_HOST',
]
const [, GUIDE = ''] =
  /`servers\.yaml`:\n\n```yaml\n(.*?)```/s.exec(readFileSync('docs/guides/kubernetes.md', 'utf8')) ?? []
const VALUES = {
  'as it comes': {},
  'as the guide has it': parse(GUIDE) as Values,
  'with everything': EVERYTHING,
  'with HTTPS of its own': {
    publicUrl: 'https://runyard.example.com:8443',
    service: { type: 'LoadBalancer', port: 8443, tlsSecret: 'runyard-tls' },
    settings: { RUNYARD_HSTS: 31_536_000 },
    serviceMonitor: { enabled: true },
  },
  'with as little as possible': {
    replicas: 1,
    serviceAccount: { create: false, name: 'mine' },
    podDisruptionBudget: { enabled: false },
    networkPolicy: { workers: { enabled: false } },
  },
  'as --reuse-values leaves it that does not know newer values': {
    certificateAuthorities: null,
    extraEnv: null,
    extraVolumes: null,
    extraVolumeMounts: null,
    admissionPolicy: null,
    workers: { shareNamespace: null },
  },
}

function only(objects: readonly KubernetesObject[], kind: string, name = 'runyard'): KubernetesObject {
  const found = objects.filter(object => object.kind === kind && object.metadata.name === name)
  assert.equal(found.length, 1, `${found.length} objects ${kind} ${name}`)
  return found[0]!
}

/** True if a selector selects a pod: the pod has all its labels. */
function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

function environmentOf(objects: readonly KubernetesObject[]): { name: string; value?: string; valueFrom?: object }[] {
  return only(objects, 'Deployment').spec.template.spec.containers[0].env
}

/** Error of the chart for these values. */
function refusal(values: Values): string {
  const { status, stderr } = template(values)
  assert.notEqual(status, 0, JSON.stringify(values))
  return stderr
}

function variablesOf(objects: readonly KubernetesObject[]): Record<string, string | undefined> {
  const env: { name: string; value?: string }[] = objects.find(({ kind }) => kind === 'Deployment')!.spec.template.spec
    .containers[0].env
  return Object.fromEntries(env.map(({ name, value }) => [name, value]))
}

/** Notes of Helm after an installation, which it does not render without a cluster. */
function notesOf(values: Values): string {
  const chart = temporaryFolder()
  cpSync(CHART, chart, { recursive: true })
  renameSync(join(chart, 'templates/NOTES.txt'), join(chart, 'notes'))
  writeFileSync(join(chart, 'templates/notes.yaml'), 'kind: Notes\nnotes: {{ tpl (.Files.Get "notes") . | quote }}')
  const { status, stdout, stderr } = template(values, {}, chart)
  assert.equal(status, 0, stderr)
  const objects = parseAllDocuments(stdout).map(document => document.toJS())
  return objects.find(object => object?.kind === 'Notes').notes.replaceAll('\n', ' ')
}

interface Schema {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: unknown
}

/** The values of the chart whose type the schema leaves open, or does not know. */
function placesWithoutType(schema: Schema | undefined, value: unknown, place = ''): string[] {
  if (schema === undefined || (schema.type === undefined && schema.enum === undefined)) return [place]
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  if (!isObject || schema.properties === undefined) return []
  if (schema.additionalProperties !== false) return [place]
  return Object.entries(value).flatMap(([name, inner]) =>
    placesWithoutType(schema.properties?.[name], inner, `${place}.${name}`),
  )
}

describe('the chart', { skip: noHelm }, () => {
  for (const [how, values] of Object.entries(VALUES)) {
    test(`${how}: every object is one that Kubernetes takes`, () => {
      const check = openObjectCheck(objectsFile)
      // It belongs to an operator that a cluster may have.
      const objects = render(values).filter(({ kind }) => kind !== 'ServiceMonitor')
      assert.deepEqual(objects.flatMap(check), [])
    })

    test(`${how}: the server takes the settings, each once`, () => {
      const given = environmentOf(render(values)).map(({ name, value }) => [name, value] as const)
      assert.deepEqual(
        given.map(([name]) => name).filter((name, at, names) => names.indexOf(name) !== at),
        [],
      )
      const secret: Record<string, string> = {
        RUNYARD_DATABASE: 'postgres://runyard:word@db/runyard',
        RUNYARD_API_KEY: 'key-of-twenty-letters',
        RUNYARD_PREVIOUS_API_KEY: 'key-before-of-twenty-letters',
        RUNYARD_METRICS_KEY: 'metrics-of-twenty-letters',
        RUNYARD_MASTER_KEY: Buffer.alloc(32).toString('base64'),
      }
      const env = Object.fromEntries(given.map(([name, value]) => [name, value ?? secret[name]]))
      const absolute = (path: string) => join('/', path)
      const reading = readConfig({ options: {}, env, absolute, read: () => '' })
      assert.deepEqual('mistakes' in reading ? reading.mistakes : [], [])
      assert.deepEqual(strayVariables(env), [])
    })
  }

  test('with helm lint, too', () => {
    const { status, stdout } = helm(['lint', '--strict', CHART])
    assert.equal(status, 0, stdout)
  })

  test('two servers, the Service goes to the one with the label, and it may always be one less', () => {
    const objects = render({})
    const { spec } = only(objects, 'Deployment')
    const { labels } = spec.template.metadata
    assert.equal(spec.replicas, 2)
    for (const name of ['runyard', 'runyard-workers']) {
      const { selector } = only(objects, 'Service', name).spec
      assert.equal(selects(selector, labels), false, 'a server without a role gets calls')
      assert.equal(selects(selector, { ...labels, 'runyard.dev/role': 'standby' }), false)
      assert.equal(selects(selector, { ...labels, 'runyard.dev/role': 'active' }), true)
    }
    const budget = only(objects, 'PodDisruptionBudget').spec
    assert.equal(budget.maxUnavailable, 1)
    assert.equal(selects(budget.selector.matchLabels, labels), true)
    assert.equal(
      budget.unhealthyPodEvictionPolicy,
      'AlwaysAllow',
      'a server that is not well keeps no node from being drained',
    )
    assert.deepEqual(spec.strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 })
  })

  test('a standby is ready and alive, so no rollout and no drain of a node waits for it', () => {
    const [server] = only(render({}), 'Deployment').spec.template.spec.containers
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
      assert.deepEqual(server[probe].httpGet, { path: '/healthz', port: 'http' })
  })

  test('secrets are references, and nothing that is secret can be given as a value', () => {
    const env = environmentOf(render({ secrets: { database: { name: 'db', key: 'uri' } } }))
    const of = (name: string) => env.find(variable => variable.name === name)?.valueFrom
    assert.deepEqual(of('RUNYARD_DATABASE'), { secretKeyRef: { name: 'db', key: 'uri' } })
    assert.deepEqual(of('RUNYARD_API_KEY'), { secretKeyRef: { name: 'runyard', key: 'api-key' } })
    assert.deepEqual(of('RUNYARD_PREVIOUS_API_KEY'), {
      secretKeyRef: { name: 'runyard', key: 'previous-api-key', optional: true },
    })
    assert.deepEqual(of('RUNYARD_METRICS_KEY'), {
      secretKeyRef: { name: 'runyard', key: 'metrics-key', optional: true },
    })
    assert.deepEqual(of('RUNYARD_MASTER_KEY'), { secretKeyRef: { name: 'runyard', key: 'encryption-key' } })
    const own = {
      RUNYARD_DATABASE: 'database',
      RUNYARD_API_KEY: 'apiKey',
      RUNYARD_PREVIOUS_API_KEY: 'apiKey',
      RUNYARD_METRICS_KEY: 'metricsKey',
      RUNYARD_MASTER_KEY: 'encryptionKey',
    }
    const others = {
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer 1',
      PGPASSWORD: 'word',
      AWS_SECRET_ACCESS_KEY: 'word',
      HTTPS_PROXY: 'http://me:word@proxy:3128',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'https://me:word@collector:4318',
    }
    const refused = refusal({
      settings: { ...own, RUNYARD_BACKUP_PASSPHRASE: 'correct horse battery staple' },
      extraEnv: Object.entries(others).map(([name, value]) => ({ name, value })),
    })
    for (const [name, key] of Object.entries(own))
      assert.match(refused, new RegExp(`settings\\.${name}: put it into the Secret that secrets\\.${key} names`))
    assert.match(refused, /settings\.RUNYARD_BACKUP_PASSPHRASE: this is a secret.*secretKeyRef/)
    for (const name of Object.keys(others))
      assert.match(refused, new RegExp(`extraEnv\\.${name}: this is a secret.*secretKeyRef`))
    assert.doesNotMatch(refused, /word@|staple|Bearer 1/, 'a secret is repeated')
    // Files and references are not secrets.
    assert.notDeepEqual(
      render({
        settings: { RUNYARD_BACKUP_PASSPHRASE_FILE: '/secrets/passphrase', RUNYARD_ACCOUNT_SECRETS_MB: 4 },
        extraEnv: [
          { name: 'PGPASSFILE', value: '/secrets/pgpass' },
          { name: 'MAX_TOKENS', value: 512 },
        ],
      }),
      [],
    )
    assert.equal(
      render(EVERYTHING).some(({ kind }) => kind === 'Secret'),
      false,
    )
  })

  test('Prometheus gets a key that reads metrics, and never that of the operator', () => {
    const keyOf = (values: Values) => {
      const objects = render({ ...values, serviceMonitor: { enabled: true, ...(values.serviceMonitor as object) } })
      return only(objects, 'ServiceMonitor').spec.endpoints[0].authorization.credentials
    }
    assert.deepEqual(keyOf({}), { name: 'runyard', key: 'metrics-key' })
    assert.deepEqual(keyOf({ secrets: { metricsKey: { name: 'm', key: 'k' } } }), { name: 'm', key: 'k' })
    assert.deepEqual(keyOf({ serviceMonitor: { keySecret: { name: 'm', key: 'k' } } }), { name: 'm', key: 'k' })
    // The values of an older chart, as --reuse-values keeps them.
    assert.deepEqual(keyOf({ secrets: { metricsKey: null } }), { name: 'runyard', key: 'metrics-key' })
  })

  test('a policy of admission says which changes of pods the server may make, unless it is switched off', () => {
    const kinds = (values: Values) => render(values).map(({ kind }) => kind)
    const [policy, binding] = ['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding']
    const { spec } = only(render({}), policy!, 'serving-runyard-label')
    assert.equal(spec.failurePolicy, 'Fail')
    assert.match(spec.matchConditions[0].expression, /'system:serviceaccount:serving:runyard'$/)
    assert.deepEqual(only(render({}), binding!, 'serving-runyard-label').spec.validationActions, ['Deny'])
    const without = kinds({ admissionPolicy: { enabled: false } })
    assert.ok(!without.includes(policy!) && !without.includes(binding!))
  })

  test('the pod is one that a restricted namespace takes', () => {
    const { spec } = only(render({}), 'Deployment').spec.template
    const [server] = spec.containers
    assert.deepEqual(spec.securityContext, {
      runAsNonRoot: true,
      runAsUser: 10001,
      runAsGroup: 10001,
      fsGroup: 10001,
      seccompProfile: { type: 'RuntimeDefault' },
    })
    assert.deepEqual(server.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  test('responses name the address that clients have', () => {
    const urlOf = (values: Values) =>
      environmentOf(render(values)).find(({ name }) => name === 'RUNYARD_PUBLIC_URL')?.value
    assert.equal(urlOf({}), 'http://runyard.serving.svc')
    assert.equal(urlOf({ service: { port: 8080 } }), 'http://runyard.serving.svc:8080')
    assert.equal(urlOf({ ingress: { enabled: true, host: 'a.example' } }), 'http://a.example')
    assert.equal(urlOf({ ingress: { enabled: true, host: 'a.example', tlsSecret: 'cert' } }), 'https://a.example')
    assert.equal(
      urlOf({ publicUrl: 'https://b.example', ingress: { enabled: true, host: 'a.example' } }),
      'https://b.example',
    )
  })

  test('a Secret with a certificate makes the servers speak HTTPS, and all that asks them does so, too', () => {
    const objects = render({ service: { tlsSecret: 'runyard-tls', port: 443 }, serviceMonitor: { enabled: true } })
    const { spec } = only(objects, 'Deployment').spec.template
    const [server] = spec.containers
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
      assert.deepEqual(server[probe].httpGet, { path: '/healthz', port: 'http', scheme: 'HTTPS' })
    const env = Object.fromEntries(environmentOf(objects).map(({ name, value }) => [name, value]))
    const mount = server.volumeMounts.find(({ name }: { name: string }) => name === 'certificate')
    assert.deepEqual(
      [env.RUNYARD_TLS_CERT, env.RUNYARD_TLS_KEY],
      [`${mount.mountPath}/tls.crt`, `${mount.mountPath}/tls.key`],
    )
    const volume = spec.volumes.find(({ name }: { name: string }) => name === 'certificate')
    assert.deepEqual(volume.secret, { secretName: 'runyard-tls', defaultMode: 0o440 })
    assert.equal(env.RUNYARD_PUBLIC_URL, 'https://runyard.serving.svc')
    // Workers have a port of their own, in plain HTTP.
    assert.match(env.RUNYARD_KUBERNETES_WORKER_URL ?? '', /^http:/)
    const [monitor] = only(objects, 'ServiceMonitor').spec.endpoints
    assert.deepEqual([monitor.scheme, monitor.tlsConfig], ['https', { serverName: 'runyard.serving.svc' }])
  })

  test('the server has the files of network volumes at the configured path, beside its workers', () => {
    const mounts = (values: Values) =>
      only(render(values), 'Deployment').spec.template.spec.containers[0].volumeMounts.map(
        ({ mountPath }: { mountPath: string }) => mountPath,
      )
    assert.deepEqual(mounts({ workers: { volumeClaim: 'shared' } }), ['/var/lib/runyard', '/tmp'])
    const together = { volumeClaim: 'shared', mountVolumes: true, namespace: '', shareNamespace: true }
    assert.deepEqual(mounts({ workers: together }), ['/var/lib/runyard', '/tmp', '/var/lib/runyard/volumes'])
    const apart = { workers: { volumeClaim: 'shared', mountVolumes: true } }
    assert.match(refusal(apart), /workers\.mountVolumes: the claim is in the namespace of the workers/)
  })

  test('a Service with the name of the program does not become a setting of the server', () => {
    assert.equal(only(render({}), 'Deployment').spec.template.spec.enableServiceLinks, false)
  })

  test('in the whole cluster it may read nodes and nothing else, and not even that has to be', () => {
    const inCluster = (values: Values) => render(values).filter(({ kind }) => kind === 'ClusterRole')
    assert.deepEqual(
      inCluster({}).map(({ rules }) => rules),
      [[{ apiGroups: [''], resources: ['nodes'], verbs: ['get'] }]],
    )
    assert.deepEqual(inCluster({ workers: { readNodes: false } }), [])
  })

  test('the least rights for what the server does, in its namespace and in that of the workers', () => {
    const objects = render({})
    const rights = (name: string) =>
      only(objects, 'Role', name).rules.map(({ resources, verbs }: { resources: string[]; verbs: string[] }) => [
        resources.join(),
        verbs.toSorted().join(' '),
      ])
    assert.deepEqual(rights('runyard-label'), [['pods', 'get list patch']])
    assert.deepEqual(rights('serving-runyard-workers'), [
      ['pods', 'create delete get list watch'],
      ['pods/log', 'get'],
      ['secrets', 'create delete get list patch update'],
      ['events', 'list watch'],
    ])
    assert.equal(only(objects, 'Role', 'serving-runyard-workers').metadata.namespace, 'gpu-workers')
    for (const name of ['runyard-label', 'serving-runyard-workers'])
      assert.deepEqual(only(objects, 'RoleBinding', name).subjects, [
        { kind: 'ServiceAccount', name: 'runyard', namespace: 'serving' },
      ])
    // Whatever else uses the account gets no token by itself.
    assert.equal(only(objects, 'ServiceAccount').automountServiceAccountToken, false)
  })

  test('workers reach the port of workers, names and the internet, and are reached by the server alone', () => {
    const objects = render({})
    const { metadata, spec } = only(objects, 'NetworkPolicy', 'serving-runyard-workers')
    const server = {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'serving' } },
      podSelector: { matchLabels: only(objects, 'Deployment').spec.selector.matchLabels },
    }
    assert.equal(metadata.namespace, 'gpu-workers')
    assert.deepEqual(spec.podSelector.matchLabels, {
      'app.kubernetes.io/managed-by': 'runyard',
      'runyard.dev/installation': 'serving-runyard',
    })
    assert.deepEqual(spec.ingress, [{ from: [server] }])
    const guarded = render({ networkPolicy: { server: { enabled: true } } })
    const ofServers = only(guarded, 'NetworkPolicy', 'runyard').spec
    const fromServers = ofServers.ingress.find(({ from }: { from: { namespaceSelector?: object }[] }) =>
      from.every(peer => peer.namespaceSelector === undefined),
    )
    const portsOf = fromServers.ports.map(({ port }: { port: number }) => port)
    assert.deepEqual(portsOf, [8080, 8082], 'a standby passes on what clients and workers call')
    const [toServer, toNames, toInternet, ...others] = spec.egress
    assert.deepEqual(toServer, { to: [server], ports: [{ protocol: 'TCP', port: 8082 }] })
    assert.deepEqual(
      toNames.ports.map(({ port }: { port: number }) => port),
      [53, 53],
    )
    assert.equal(toInternet.to[0].ipBlock.cidr, '0.0.0.0/0')
    for (const network of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16'])
      assert.ok(toInternet.to[0].ipBlock.except.includes(network), network)
    assert.deepEqual(others, [])
    const closed = render({ networkPolicy: { workers: { internet: false } } })
    assert.equal(only(closed, 'NetworkPolicy', 'serving-runyard-workers').spec.egress.length, 2)
  })

  test('workers have a namespace of their own, unless the operator says that they share that of the servers', () => {
    assert.match(
      refusal({ workers: { namespace: '' } }),
      /workers\.namespace: name a namespace for workers alone.*serving/,
    )
    assert.match(refusal({ workers: { namespace: 'serving' } }), /workers\.namespace: name a namespace/)
    assert.match(
      refusal({ workers: { shareNamespace: true } }),
      /workers\.shareNamespace: workers\.namespace \(gpu-workers\)/,
    )
    const shared = render({ workers: { namespace: '', shareNamespace: true } })
    assert.equal(only(shared, 'Role', 'runyard-workers').metadata.namespace, 'serving')
    const warned = notesOf({ workers: { namespace: '', shareNamespace: true }, admissionPolicy: { enabled: false } })
    assert.match(warned, /WARNING: workers are in the namespace of the servers/)
    assert.match(warned, /WARNING: without admissionPolicy\.enabled/)
    assert.doesNotMatch(notesOf({}), /WARNING/)
  })

  test('numbers of a file of values are written as they are, whatever their size', () => {
    const env = new Map(
      environmentOf(
        render({
          settings: {
            RUNYARD_RETENTION: 31_536_000,
            RUNYARD_MAX_INPUT: 1_234_567_890_123_456,
            RUNYARD_SHARE: 0.5,
            RUNYARD_FLAG: true,
          },
          extraEnv: [{ name: 'OTEL_BSP_MAX_QUEUE_SIZE', value: 1_000_000 }],
        }),
      ).map(({ name, value }) => [name, value]),
    )
    assert.deepEqual(
      ['RUNYARD_RETENTION', 'RUNYARD_MAX_INPUT', 'RUNYARD_SHARE', 'RUNYARD_FLAG', 'OTEL_BSP_MAX_QUEUE_SIZE'].map(name =>
        env.get(name),
      ),
      ['31536000', '1234567890123456', '0.5', 'true', '1000000'],
    )
    const text = template({
      replicas: 3,
      terminationGracePeriod: 3600,
      dataSize: 6_442_450_944,
      resources: { limits: { memory: 2_147_483_648 } },
      service: { port: 65_535 },
      tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 31_536_000 }],
      networkPolicy: { workers: { extraEgress: [{ ports: [{ port: 65_535 }] }] } },
      extraVolumes: [{ name: 'a', emptyDir: { sizeLimit: 1_073_741_824 } }],
    }).stdout
    assert.match(text, /tolerationSeconds: 31536000\n/)
    assert.doesNotMatch(text, /[0-9]e\+[0-9]/)
  })

  test('a server trusts further authorities, and has variables and files of the operator', () => {
    const objects = render({
      certificateAuthorities: { secret: 'database-ca' },
      extraEnv: [
        { name: 'OTEL_SERVICE_NAME', value: 'gpus' },
        { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ],
      extraVolumes: [{ name: 'prices', configMap: { name: 'prices' } }],
      extraVolumeMounts: [{ name: 'prices', mountPath: '/prices', readOnly: true }],
    })
    const { spec } = only(objects, 'Deployment').spec.template
    const [{ volumeMounts }] = spec.containers
    const named = (list: { name: string }[], name: string) => list.find(one => one.name === name)
    assert.deepEqual(named(spec.volumes, 'authorities'), {
      name: 'authorities',
      secret: { secretName: 'database-ca', defaultMode: 0o440, items: [{ key: 'ca.crt', path: 'authorities.pem' }] },
    })
    const { mountPath } = volumeMounts.find(({ name }: { name: string }) => name === 'authorities')
    const env = environmentOf(objects)
    assert.equal(env.find(({ name }) => name === 'NODE_EXTRA_CA_CERTS')?.value, `${mountPath}/authorities.pem`)
    assert.deepEqual(named(env, 'OTEL_SERVICE_NAME'), { name: 'OTEL_SERVICE_NAME', value: 'gpus' })
    assert.deepEqual(named(env, 'NODE'), { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } })
    assert.deepEqual(named(spec.volumes, 'prices'), { name: 'prices', configMap: { name: 'prices' } })
    assert.deepEqual(named(volumeMounts, 'prices'), { name: 'prices', mountPath: '/prices', readOnly: true })
  })

  test('every setting that the chart does not set itself can be given, and those that it sets cannot', () => {
    const own = environmentOf(render(EVERYTHING)).map(({ name }) => name)
    const variables = Object.values(SETTINGS).map(({ variable }) => `RUNYARD_${variable}`)
    const free = variables.filter(name => !own.includes(name) && !NOT_IN_A_CLUSTER.includes(name))
    const given = environmentOf(render({ settings: Object.fromEntries(free.map(name => [name, '1'])) }))
    assert.deepEqual(
      given.map(({ name }) => name).filter(name => free.includes(name)),
      free.toSorted(),
    )
    const refused = refusal({ settings: Object.fromEntries(NOT_IN_A_CLUSTER.map(name => [name, '1'])) })
    for (const name of NOT_IN_A_CLUSTER) assert.ok(refused.includes(`settings.${name}: the chart sets`), name)
  })

  test('releases with any name that Helm takes have names that Kubernetes takes, and no two the same', () => {
    const long = 'x'.repeat(52)
    const releases = [
      { release: `${long}a` },
      { release: `${long}b` },
      { release: `runyard${'y'.repeat(46)}` },
      { release: '1st' },
      { release: 'a.b' },
      { release: 'a-b' },
      { release: 'c', namespace: 'a-b' },
      { release: `${long}a`, namespace: `${'n'.repeat(62)}1` },
      { release: `${long}a`, namespace: `${'n'.repeat(62)}2` },
    ]
    const check = openObjectCheck(objectsFile)
    const taken = new Map<string, object>()
    const installations = new Set<string>()
    for (const release of releases) {
      const objects = render({ ...EVERYTHING, workers: { installation: '' } }, release)
      assert.deepEqual(objects.filter(({ kind }) => kind !== 'ServiceMonitor').flatMap(check), [])
      for (const { kind, metadata } of objects) {
        assert.match(metadata.name, /^(?=.{1,63}$)[a-z]([-a-z0-9]*[a-z0-9])?$/, `${kind} of ${release.release}`)
        for (const value of Object.values(metadata.labels ?? {}))
          assert.match(value, /^(?=.{1,63}$)[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$/)
        const name = `${kind} ${metadata.namespace ?? ''}/${metadata.name}`
        assert.ok(!taken.has(name), `${name} is of ${JSON.stringify([taken.get(name), release])}`)
        taken.set(name, release)
      }
      const { RUNYARD_KUBERNETES_INSTALLATION: installation = '' } = variablesOf(objects)
      assert.match(installation, /^[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?$/)
      installations.add(installation)
    }
    assert.equal(installations.size, releases.length)
  })

  test('of two releases that would have one installation by chance, Helm refuses the second', () => {
    // Neither can be renamed: workers that run know their installation by its name.
    const ofWorkers = (values: Values, release: string, namespace: string) =>
      render(values, { release, namespace })
        .filter(({ metadata }) => metadata.namespace === 'gpu-workers')
        .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    assert.deepEqual(ofWorkers({}, 'c', 'a-b'), ofWorkers({}, 'b-c', 'a'), 'they have other objects')
    // A user who sets it has two releases on one database, or in one namespace of workers.
    const given = { workers: { installation: 'gpus' } }
    const all = [...ofWorkers(given, 'c', 'a-b'), ...ofWorkers(given, 'b-c', 'a'), ...ofWorkers(given, 'c', 'a')]
    assert.equal(new Set(all).size, all.length)
  })

  test('values that mean nothing are refused with their name', () => {
    for (const [values, problem] of [
      [{ replica: 2 }, /replica/],
      [{ secrets: { database: { name: '' } } }, /database/],
      [{ ingress: { enabled: true } }, /ingress\.host/],
      [{ certificateAuthorities: { secret: 'a', configMap: 'b' } }, /a ConfigMap or a Secret, not both/],
    ] as const)
      assert.match(refusal(values), problem)
    const types = refusal({
      replicas: 0,
      settings: { LOG_LEVEL: 'debug', RUNYARD_MAX_WORKERS: [1] },
      extraEnv: [{ name: 'A' }],
      podLabels: { 'app.kubernetes.io/name': 'x' },
      workers: { namespace: 'a.b' },
    })
    for (const name of [
      'replicas',
      'LOG_LEVEL',
      'RUNYARD_MAX_WORKERS',
      'extraEnv',
      'app.kubernetes.io/name',
      'namespace',
    ])
      assert.ok(types.includes(name), name)
  })

  test('all mistakes of values that contradict each other are reported at once', () => {
    const message = refusal({
      settings: { RUNYARD_PORT: '1', RUNYARD_KUBERNETES: 'off', RUNYARD_A: '1' },
      certificateAuthorities: { secret: 'a' },
      extraEnv: ['RUNYARD_A', 'B', 'B', 'NODE_EXTRA_CA_CERTS', 'POD_NAME'].map(name => ({ name, value: 1 })),
      extraVolumes: [{ name: 'data', emptyDir: {} }, { name: 'own' }],
      extraVolumeMounts: [
        { name: 'none', mountPath: '/a' },
        { name: 'own', mountPath: '/tmp/' },
      ],
    })
    for (const mistake of [
      'settings.RUNYARD_PORT: the chart sets this variable itself',
      'settings.RUNYARD_KUBERNETES: the chart sets this variable itself',
      'extraEnv.RUNYARD_A: settings sets this variable already',
      'extraEnv.B: extraEnv sets this variable already',
      'extraEnv.NODE_EXTRA_CA_CERTS: certificateAuthorities sets this variable already',
      'extraEnv.POD_NAME: the chart sets this variable itself',
      'extraVolumes: data is the name of a volume of the chart',
      'extraVolumeMounts: no volume in extraVolumes has the name none',
      'extraVolumeMounts: something is mounted at /tmp/ already',
    ])
      assert.ok(message.includes(mistake), `${mistake} is not in ${message}`)
  })

  test('any value of a wrong type is refused', () => {
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
    const defaults = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'))
    assert.deepEqual(placesWithoutType(schema, defaults), [])
    const wrong = {
      replicas: '2',
      image: { tag: 1.1 },
      workers: { readNodes: 'yes' },
      allowedHosts: 'a',
      podAnnotations: { a: 1 },
    }
    const text = refusal(wrong)
    for (const name of ['replicas', 'tag', 'readNodes', 'allowedHosts', 'podAnnotations'])
      assert.match(text, new RegExp(name))
  })

  test('the version is that of the package', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
    assert.deepEqual([chart.version, chart.appVersion], [version, version])
  })
})
