/** Traffic that the network policy of the workers allows, and policies that the driver replaces. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { applyPolicy, type PolicyOptions, workerPolicy } from '../../../src/drivers/kubernetes/network-policy.ts'
import { PlayedKubernetes } from '../../support/played-kubernetes.ts'

const INSIDE: PolicyOptions = {
  installation: 'inst1',
  namespace: 'n',
  egress: 'open',
  workerUrl: 'http://runyard.n.svc',
  workerPort: 8082,
  isInside: true,
}

interface Rules {
  readonly spec: { readonly ingress: object[]; readonly egress: object[]; readonly podSelector: object }
}

const rules = (changes: Partial<PolicyOptions> = {}) =>
  (workerPolicy({ ...INSIDE, ...changes }) as unknown as Rules).spec

test('workers reach names, the server and the internet, and nobody but the server reaches them', () => {
  const server = {
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'runyard', 'app.kubernetes.io/component': 'server' } },
  }
  const { ingress, egress, podSelector } = rules()
  assert.deepEqual(ingress, [{ from: [server] }])
  assert.deepEqual(egress.slice(0, 2), [
    {
      ports: [
        { protocol: 'UDP', port: 53 },
        { protocol: 'TCP', port: 53 },
      ],
    },
    { to: [server], ports: [{ protocol: 'TCP', port: 8082 }] },
  ])
  assert.match(JSON.stringify(egress[2]), /"cidr":"0\.0\.0\.0\/0","except":\["10\.0\.0\.0\/8"/)
  assert.deepEqual(podSelector, {
    matchLabels: { 'app.kubernetes.io/managed-by': 'runyard', 'runyard.dev/installation': 'inst1' },
    matchExpressions: [{ key: 'runyard.dev/worker', operator: 'Exists' }],
  })
})

test('a closed installation does not reach the internet', () => {
  assert.equal(rules({ egress: 'closed' }).egress.length, 2)
})

test('a server outside of the cluster is named by its address, where it has one', () => {
  const outside = rules({ isInside: false, workerUrl: 'http://192.0.2.7:9000' })
  const peer = { ipBlock: { cidr: '192.0.2.7/32' } }
  assert.deepEqual(
    [outside.ingress, outside.egress[1]],
    [[{ from: [peer] }], { to: [peer], ports: [{ protocol: 'TCP', port: 9000 }] }],
  )
  const named = rules({ isInside: false, workerUrl: 'https://runyard.example' })
  assert.deepEqual([named.ingress, named.egress[1]], [[{}], { ports: [{ protocol: 'TCP', port: 443 }] }])
})

test('a policy is made, replaced, and left alone where it is of others', async () => {
  const api = new PlayedKubernetes()
  await applyPolicy(api, INSIDE)
  await applyPolicy(api, { ...INSIDE, egress: 'closed' })
  const [policy] = api.all('networkpolicies') as unknown as Rules[]
  assert.equal(policy?.spec.egress.length, 2)
  assert.equal(api.all('networkpolicies').length, 1)
  api.put('networkpolicies', {
    metadata: { name: 'runyard-workers-inst1', labels: { 'runyard.dev/installation': 'x' } },
  })
  const before = api.calls.length
  await applyPolicy(api, INSIDE)
  assert.deepEqual(api.calls.slice(before), ['GET networkpolicies'])
})
