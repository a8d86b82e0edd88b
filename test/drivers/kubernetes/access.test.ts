/** Access to a cluster: kubectl's configuration, the service account of a pod, a proxy. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type AccessOptions, clusterAccess } from '../../../src/drivers/kubernetes/access.ts'
import { VirtualClock } from '../../support/virtual-clock.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

function folderOf(context: TestContext, files: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-access-'))
  context.after(() => rmSync(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return folder
}

function configured(user: object, changes: Partial<AccessOptions> = {}, cluster: object = {}) {
  const asked: (readonly string[])[] = []
  const config = {
    contexts: [{ name: 'lab', context: { namespace: 'gpu' } }],
    clusters: [
      { cluster: { server: 'https://10.0.0.1:6443/', 'certificate-authority-data': base64('CA'), ...cluster } },
    ],
    users: [{ user }],
  }
  const kubectl = (args: readonly string[]) => {
    asked.push(args)
    return JSON.stringify(config)
  }
  const options = { where: 'kubeconfig', context: null, env: {}, clock: new VirtualClock(), kubectl, ...changes }
  return { access: () => clusterAccess(options), asked }
}

test('kubectl says how the cluster is reached, with the certificate of a client', () => {
  const user = { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') }
  const { access, asked } = configured(user, { context: 'lab' }, { 'tls-server-name': 'kube' })
  const found = access()
  assert.deepEqual(
    [found.server, found.namespace, found.tls, found.token('kept'), found.isInside],
    ['https://10.0.0.1:6443', 'gpu', { ca: 'CA', cert: 'CERT', key: 'KEY', servername: 'kube' }, null, false],
  )
  assert.deepEqual(asked, [['config', 'view', '--raw', '--minify', '-o', 'json', '--context', 'lab']])
})

test('a token may stand in the configuration or in a file, which is read again', async context => {
  assert.equal(configured({ token: 't1' }).access().token('kept'), 't1')
  const file = join(folderOf(context, { token: 't2\n' }), 'token')
  const clock = new VirtualClock()
  const access = configured({ tokenFile: file }, { clock }).access()
  assert.equal(access.token('kept'), 't2')
  writeFileSync(file, 't3\n')
  assert.equal(access.token('kept'), 't2')
  await clock.advance(60_000)
  assert.equal(access.token('kept'), 't3')
  writeFileSync(file, 't4\n')
  assert.equal(access.token('fresh'), 't4')
  rmSync(file)
  assert.equal(access.token('fresh'), 't4', 'the one that is known may still do')
})

test('credentials that a program makes are a matter of kubectl, and so are other gaps', () => {
  const { access } = configured({ exec: { command: 'aws-iam-authenticator' } })
  assert.throws(access, /the program 'aws-iam-authenticator', which is a matter of kubectl: run kubectl proxy/)
  assert.throws(configured({}, { context: 'x' }, { server: undefined }).access, /names no cluster for the context x/)
  const file = configured({ 'client-certificate': '/nowhere/cert' }).access
  assert.throws(file, /the client certificate that the configuration of kubectl names cannot be read: \/nowhere\/cert/)
})

test('without kubectl a configuration in JSON is read, and anything else is explained', context => {
  const kubectl = () => {
    throw Object.assign(new Error('spawn'), { code: 'ENOENT' })
  }
  const config = { clusters: [{ cluster: { server: 'https://a' } }], users: [{ user: { token: 't' } }] }
  const folder = folderOf(context, { json: JSON.stringify(config), yaml: 'apiVersion: v1' })
  const { access } = configured({}, { kubectl, env: { KUBECONFIG: join(folder, 'json') } })
  assert.deepEqual([access().server, access().namespace], ['https://a', 'default'])
  const other = configured({}, { kubectl, env: { KUBECONFIG: join(folder, 'yaml') } })
  assert.throws(other.access, /cannot be read: kubectl is not installed/)
  const failing = () => {
    throw Object.assign(new Error('x'), { stderr: 'error: context "x" does not exist\nmore' })
  }
  assert.throws(configured({}, { kubectl: failing }).access, /cannot be read: error: context "x" does not exist \(/)
})

test('a pod uses its service account, whose token is replaced from time to time', async context => {
  const accountFolder = folderOf(context, { token: 'a', 'ca.crt': 'CA', namespace: 'gpu\n' })
  const clock = new VirtualClock()
  const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
  const options = { where: 'in-cluster', context: null, env, clock, accountFolder }
  const access = clusterAccess(options)
  assert.deepEqual(
    [access.server, access.namespace, access.tls.ca, access.isInside],
    ['https://[fd00::1]:443', 'gpu', 'CA', true],
  )
  writeFileSync(join(accountFolder, 'token'), 'b')
  assert.equal(access.token('kept'), 'a')
  await clock.advance(61_000)
  assert.equal(access.token('kept'), 'b')
  assert.throws(() => clusterAccess({ ...options, env: {} }), /is for a server that is a pod itself/)
  assert.throws(() => clusterAccess({ ...options, accountFolder: '/nowhere' }), /automountServiceAccountToken/)
})

test('a proxy is called as it is', () => {
  const where = 'http://127.0.0.1:8001'
  const access = clusterAccess({ where, context: null, env: {}, clock: new VirtualClock() })
  assert.deepEqual([access.server, access.token('kept'), access.tls], [where, null, {}])
})
