/**
 * The label by which a Service finds the active server: it is where the active one is,
 * whatever happened to the others.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type KubernetesApi,
  type KubernetesCall,
  KubernetesError,
  type PodObject,
} from '../../src/drivers/kubernetes/api.ts'
import { createActiveLabel, ownPod, ROLE_LABEL } from '../../src/main/platform/active-label.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const OURS = {
  'app.kubernetes.io/name': 'runyard',
  'app.kubernetes.io/instance': 'prod',
  'app.kubernetes.io/component': 'server',
}
const POD = /^\/api\/v1\/namespaces\/serving\/pods(?:\/([a-z0-9-]+))?$/

/** The pods of a namespace, as far as labels go. */
class Pods implements KubernetesApi {
  readonly labels = new Map<string, Record<string, string>>()
  readonly costs = new Map<string, string>()
  /** Called before each call; throws what the API answers instead. */
  before: (call: KubernetesCall) => void = () => {}

  roles(): Record<string, string | undefined> {
    return Object.fromEntries([...this.labels].map(([name, labels]) => [name, labels[ROLE_LABEL]]))
  }

  async call<Result>(call: KubernetesCall): Promise<Result> {
    await Promise.resolve()
    this.before(call)
    const [, name] = POD.exec(call.path) ?? assert.fail(call.path)
    if (name === undefined) return { items: this.#listed(call.query?.labelSelector ?? '') } as Result
    const labels = this.labels.get(name)
    if (labels === undefined) throw new KubernetesError('not found', 404)
    if (call.method === 'PATCH') {
      const { metadata } = call.body as {
        metadata: { labels: Record<string, string>; annotations: Record<string, string> }
      }
      Object.assign(labels, metadata.labels)
      this.costs.set(name, metadata.annotations['controller.kubernetes.io/pod-deletion-cost']!)
    }
    return { metadata: { name, labels } } as Result
  }

  stream(): never {
    throw new Error('the label needs no stream')
  }

  #listed(selector: string): PodObject[] {
    const wanted = selector.split(',').map(part => part.split('=') as [string, string])
    return [...this.labels]
      .filter(([, labels]) => wanted.every(([name, value]) => labels[name] === value))
      .map(([name, labels]) => ({ metadata: { name, labels } }))
  }
}

function setUp() {
  const pods = new Pods()
  const clock = new VirtualClock()
  const troubles: string[] = []
  for (const name of ['one', 'two']) pods.labels.set(name, { ...OURS })
  const labelOf = (name: string) =>
    createActiveLabel({
      api: pods,
      pod: { namespace: 'serving', name },
      clock,
      onTrouble: (role, problem) => troubles.push(`${role}: ${problem}`),
    })
  return { pods, clock, troubles, labelOf }
}

describe('the label of the active server', () => {
  test('follows the role, and the deployment would end the standby first', async () => {
    const { pods, labelOf } = setUp()
    const one = labelOf('one')
    await one.show('standby')
    await labelOf('two').show('standby')
    assert.deepEqual(pods.roles(), { one: 'standby', two: 'standby' })
    await one.show('active')
    assert.deepEqual(pods.roles(), { one: 'active', two: 'standby' })
    assert.deepEqual(
      [...pods.costs],
      [
        ['one', '100'],
        ['two', '0'],
      ],
    )
  })

  test('is taken from a server that cannot give it up, and from nobody else', async () => {
    const { pods, labelOf } = setUp()
    pods.labels.set('other-release', { ...OURS, 'app.kubernetes.io/instance': 'test', [ROLE_LABEL]: 'active' })
    await labelOf('one').show('active')
    await labelOf('two').show('active')
    assert.deepEqual(pods.roles(), { one: 'standby', two: 'active', 'other-release': 'active' })
  })

  test('is tried again while the API is down, and the problem is logged once', async () => {
    const { pods, clock, troubles, labelOf } = setUp()
    pods.before = () => {
      throw new KubernetesError('nobody listens at its address', null)
    }
    const shown = labelOf('one').show('active')
    await clock.advance(5_000)
    assert.deepEqual(pods.roles().one, undefined)
    pods.before = () => {}
    await clock.advance(1_000)
    await shown
    assert.equal(pods.roles().one, 'active')
    assert.deepEqual(troubles, ['active: nobody listens at its address'])
  })

  test('is not set for a role that was lost in the meantime', async () => {
    const { pods, labelOf } = setUp()
    const one = labelOf('one')
    let patches = 0
    pods.before = ({ method }) => {
      if (method === 'PATCH') patches += 1
      else void one.show('standby')
    }
    await one.show('active')
    assert.deepEqual([pods.roles().one, patches], ['standby', 1])
  })

  test('a pod that goes while its label is taken does not hold up the new active server', async () => {
    const { pods, labelOf } = setUp()
    await labelOf('one').show('active')
    pods.before = ({ path }) => {
      if (path.endsWith('/one')) pods.labels.delete('one')
    }
    await labelOf('two').show('active')
    assert.deepEqual(pods.roles(), { two: 'active' })
  })

  test('attempts end when it is closed', async () => {
    const { pods, clock, labelOf } = setUp()
    pods.before = () => {
      throw new KubernetesError('status 500', 500)
    }
    const one = labelOf('one')
    const shown = one.show('active')
    await clock.advance(1_500)
    one.close()
    await clock.advance(1_000)
    await shown
  })

  test('a server outside of a pod has no label', () => {
    assert.equal(ownPod({}), null)
    assert.equal(ownPod({ POD_NAME: 'one' }), null)
    assert.deepEqual(ownPod({ POD_NAME: 'one', POD_NAMESPACE: 'serving' }), { namespace: 'serving', name: 'one' })
  })
})
