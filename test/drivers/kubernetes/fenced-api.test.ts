/** That only the active one of several servers changes anything in a cluster. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KubernetesError, kubernetesError } from '../../../src/drivers/kubernetes/api.ts'
import { fencedApi } from '../../../src/drivers/kubernetes/fenced-api.ts'
import { PlayedKubernetes } from '../../support/played-kubernetes.ts'

const PODS = '/api/v1/namespaces/n/pods'

test('a server that does not lead reads, and changes nothing until it leads again', async () => {
  const played = new PlayedKubernetes()
  let leads = true
  const api = fencedApi(played, { confirm: async () => leads })
  const create = (name: string) => api.call({ method: 'POST', path: PODS, body: { metadata: { name } } })
  await create('a')
  leads = false
  for (const method of ['PUT', 'PATCH', 'DELETE'] as const) {
    const refused = (error: unknown) => error instanceof KubernetesError && kubernetesError(error).isPassing
    await assert.rejects(api.call({ method, path: `${PODS}/a`, body: { metadata: {} } }), refused)
  }
  await assert.rejects(create('b'))
  const { items } = await api.call<{ items: readonly unknown[] }>({ method: 'GET', path: PODS })
  assert.equal(items.length, 1)
  leads = true
  await create('b')
  assert.equal(played.all('pods').length, 2)
})
