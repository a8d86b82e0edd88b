/** Servers with workers that are bound to their machine, so that no other machine can stand by for them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Config, readConfig } from '../../../src/config/config.ts'
import { isBoundToMachine } from '../../../src/main/database/store.ts'
import { podUrls } from '../../../src/main/platform/kubernetes.ts'

function config(options: Record<string, unknown>): Config {
  const reading = readConfig({ options, env: {}, absolute: path => `/here/${path}` })
  return 'config' in reading ? reading.config : assert.fail(reading.mistakes.join())
}

const CLUSTER = { kubernetes: 'kubeconfig', kubernetesWorkerUrl: 'http://runyard.example:8082' }

test('a server whose workers are pods is bound to no machine, unless it runs folders, too', () => {
  assert.equal(isBoundToMachine(config({})), true)
  assert.equal(isBoundToMachine(config(CLUSTER)), false)
  assert.equal(isBoundToMachine(config({ ...CLUSTER, worker: ['a'] })), true)
  assert.equal(isBoundToMachine(config({ ...CLUSTER, processRoot: ['a'] })), true)
  assert.equal(isBoundToMachine(config({ ...CLUSTER, worker: ['a'], processes: 'off' })), false)
})

test('pods call all servers of an installation at one address', async () => {
  const urls = podUrls(config(CLUSTER))
  assert.deepEqual(
    [urls?.currentUrl, await urls?.url()],
    ['http://runyard.example:8082', 'http://runyard.example:8082'],
  )
  assert.equal(podUrls(config({})), null)
})
