/** The chart, as Helm renders it: valid objects, no secret in them, and no right that the server does not use. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { readConfig, strayVariables } from '../../src/config/config.ts'
import { CHART, helm, noHelm, objectsFile, render, template, type Values } from '../support/helm.ts'
import { type KubernetesObject, openObjectCheck } from '../support/kubernetes-objects.ts'

const EVERYTHING = {
  publicUrl: 'https://runyard.example.com',
  trustedProxies: ['10.42.0.0/16'],
  allowedHosts: ['gpu.example.com'],
  settings: { RUNYARD_LOG_LEVEL: 'debug', RUNYARD_MAX_WORKERS: 200, RUNYARD_KUBERNETES_NODE_LOST: 120 },
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
const VALUES = {
  'as it comes': {},
  'with everything': EVERYTHING,
  'with HTTPS of its own': {
    publicUrl: 'https://runyard.example.com:8443',
    service: { type: 'LoadBalancer', port: 8443, tlsSecret: 'runyard-tls' },
    serviceMonitor: { enabled: true },
  },
  'with as little as possible': {
    replicas: 1,
    serviceAccount: { create: false, name: 'mine' },
    podDisruptionBudget: { enabled: false },
    networkPolicy: { workers: { enabled: false } },
  },
}

function only(objects: readonly KubernetesObject[], kind: string, name = 'runyard'): KubernetesObject {
  const found = objects.filter(object => object.kind === kind && object.metadata.name === name)
  assert.equal(found.length, 1, `${found.length} objects ${kind} ${name}`)
  return found[0]!
}

/** Whether a selector, of which every label has to be there, chooses a pod. */
function selects(selector: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value)
}

function environmentOf(objects: readonly KubernetesObject[]): { name: string; value?: string; valueFrom?: object }[] {
  return only(objects, 'Deployment').spec.template.spec.containers[0].env
}

describe('the chart', { skip: noHelm }, () => {
  for (const [how, values] of Object.entries(VALUES)) {
    test(`${how}: every object is one that Kubernetes takes`, () => {
      const check = openObjectCheck(objectsFile)
      // It belongs to an operator that a cluster may have.
      const objects = render(values).filter(({ kind }) => kind !== 'ServiceMonitor')
      assert.deepEqual(objects.flatMap(check), [])
    })

    test(`${how}: the server takes the settings, none twice`, () => {
      const given = environmentOf(render(values)).map(({ name, value }) => [name, value] as const)
      assert.deepEqual(
        given.map(([name]) => name).filter((name, at, names) => names.indexOf(name) !== at),
        [],
      )
      const secret: Record<string, string> = {
        RUNYARD_DATABASE: 'postgres://runyard:word@db/runyard',
        RUNYARD_API_KEY: 'key-of-twenty-letters',
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
    assert.deepEqual(of('RUNYARD_METRICS_KEY'), {
      secretKeyRef: { name: 'runyard', key: 'metrics-key', optional: true },
    })
    assert.deepEqual(of('RUNYARD_MASTER_KEY'), { secretKeyRef: { name: 'runyard', key: 'encryption-key' } })
    for (const name of ['RUNYARD_DATABASE', 'RUNYARD_API_KEY', 'RUNYARD_METRICS_KEY', 'RUNYARD_MASTER_KEY']) {
      const { status, stderr } = template({ settings: { [name]: 'word' } })
      assert.notEqual(status, 0)
      assert.match(stderr, new RegExp(`invalid propertyName '${name}'`))
    }
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

  test('the server has the files of network volumes where it is told to, beside its workers', () => {
    const mounts = (values: Values) =>
      only(render(values), 'Deployment').spec.template.spec.containers[0].volumeMounts.map(
        ({ mountPath }: { mountPath: string }) => mountPath,
      )
    assert.deepEqual(mounts({ workers: { volumeClaim: 'shared' } }), ['/var/lib/runyard', '/tmp'])
    assert.deepEqual(mounts({ workers: { volumeClaim: 'shared', mountVolumes: true } }), [
      '/var/lib/runyard',
      '/tmp',
      '/var/lib/runyard/volumes',
    ])
    const apart = { workers: { volumeClaim: 'shared', mountVolumes: true, namespace: 'gpu-workers' } }
    assert.match(template(apart).stderr, /workers\.mountVolumes: the claim is in the namespace of the workers/)
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
    const objects = render({ workers: { namespace: 'gpu-workers' } })
    const rights = (name: string) =>
      only(objects, 'Role', name).rules.map(({ resources, verbs }: { resources: string[]; verbs: string[] }) => [
        resources.join(),
        verbs.toSorted().join(' '),
      ])
    assert.deepEqual(rights('runyard-label'), [['pods', 'get list patch']])
    assert.deepEqual(rights('runyard-workers'), [
      ['pods', 'create delete get list watch'],
      ['pods/log', 'get'],
      ['secrets', 'create delete get list patch update'],
      ['events', 'list watch'],
    ])
    assert.equal(only(objects, 'Role', 'runyard-workers').metadata.namespace, 'gpu-workers')
    for (const name of ['runyard-label', 'runyard-workers'])
      assert.deepEqual(only(objects, 'RoleBinding', name).subjects, [
        { kind: 'ServiceAccount', name: 'runyard', namespace: 'serving' },
      ])
    // Whatever else uses the account gets no token by itself.
    assert.equal(only(objects, 'ServiceAccount').automountServiceAccountToken, false)
  })

  test('workers reach the port of workers, names and the internet, and are reached by the server alone', () => {
    const objects = render({ workers: { namespace: 'gpu-workers' } })
    const { metadata, spec } = only(objects, 'NetworkPolicy', 'runyard-workers')
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
    assert.equal(only(closed, 'NetworkPolicy', 'runyard-workers').spec.egress.length, 2)
  })

  test('values that mean nothing are refused with their name', () => {
    for (const [values, problem] of [
      [{ replica: 2 }, /replica/],
      [{ replicas: 0 }, /replicas/],
      [{ settings: { LOG_LEVEL: 'debug' } }, /LOG_LEVEL/],
      [{ settings: { RUNYARD_PORT: '1' } }, /RUNYARD_PORT/],
      [{ settings: { RUNYARD_KUBERNETES: 'off' } }, /RUNYARD_KUBERNETES/],
      [{ ingress: { enabled: true } }, /ingress\.host/],
      [{ secrets: { database: { name: '' } } }, /database/],
    ] as const) {
      const { status, stderr } = template(values)
      assert.notEqual(status, 0, JSON.stringify(values))
      assert.match(stderr, problem)
    }
  })

  test('the version is that of the package', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
    assert.deepEqual([chart.version, chart.appVersion], [version, version])
  })
})
