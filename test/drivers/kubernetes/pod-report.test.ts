/**
 * Meaning of the statuses of pods for their workers: statuses that a real Kubernetes 1.34 gave, and some that it
 * gives on other occasions.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { waitForPlaceText } from '../../../src/core/workers/platform-report.ts'
import { startFailureText } from '../../../src/core/workers/start-failure.ts'
import { type ObservedExit, observedExitText } from '../../../src/core/workers/worker-exit.ts'
import type { PodObject } from '../../../src/drivers/kubernetes/api.ts'
import { type PodLife, podReport } from '../../../src/drivers/kubernetes/pod-report.ts'

type Status = NonNullable<PodObject['status']>
const RECORDED = JSON.parse(readFileSync(join(import.meta.dirname, 'recorded-statuses.json'), 'utf8')) as Record<
  string,
  Status
>

interface PodParts {
  readonly status: Status
  readonly limits?: Record<string, string>
  readonly node?: string | null
  readonly image?: string
  readonly metadata?: object
}

function report(
  { status, limits = {}, node = 'node-1', image = 'app:1', metadata = {} }: PodParts,
  credential = false,
) {
  const pod = {
    metadata: { name: 'runyard-a', uid: 'u', resourceVersion: '7', ...metadata },
    spec: {
      ...(node === null ? {} : { nodeName: node }),
      containers: [{ name: 'worker', image, resources: { limits } }],
    },
    status,
  }
  return podReport(pod, credential)
}

const recorded = (name: string) => RECORDED[name] ?? assert.fail(name)

function exitIn(life: PodLife): ObservedExit {
  return life.kind === 'ended' ? life.exit : assert.fail(life.kind)
}

/** A life in words. */
function text(life: PodLife): string {
  switch (life.kind) {
    case 'unplaced':
      return `${life.reason.kind}: ${waitForPlaceText(life.reason)}`
    case 'placed':
      return life.trouble === null
        ? 'placed'
        : `${life.trouble.isCertain ? 'will never start' : 'does not start yet'}: ${startFailureText(life.trouble.failure)}`
    case 'running':
      return 'running'
    case 'ended':
      return observedExitText(life.exit)
  }
}

const ENDS: readonly (readonly [name: string, parts: Omit<PodParts, 'status'>, words: RegExp])[] = [
  ['oom', { limits: { memory: '100Mi' } }, /^was killed because it used more than its 100 MB of memory$/],
  ['exit3', {}, /^exited with code 3$/],
  [
    'disk',
    { limits: { 'ephemeral-storage': '1G' } },
    /^was killed because it wrote more than the 1 GB of its container disk$/,
  ],
  ['no-program', {}, /^its program does not exist in the image/],
  ['not-executable', {}, /^its program is not executable/],
  ['on-lost-node', {}, /^exited with code 0$/],
]

for (const [name, parts, words] of ENDS) {
  test(`a pod that ended as '${name}' is explained`, () => {
    assert.match(text(report({ status: recorded(name), ...parts }).life), words)
  })
}

const WAITS: readonly (readonly [name: string, words: RegExp])[] = [
  ['too-wide', /^no_room: no node of the cluster has room: 0\/1 nodes are available: 1 Insufficient cpu\.$/],
  ['gpu', /^no_room: .*Insufficient nvidia\.com\/gpu/],
  ['affinity', /^no_such_node: no node of the cluster is of the kind that it asks for/],
  ['no-claim', /^volume_pending: .*persistentvolumeclaim "nothing" not found/],
]

for (const [name, words] of WAITS) {
  test(`a pod that waits as '${name}' says for what`, () => {
    assert.match(text(report({ status: recorded(name), node: null }).life), words)
  })
}

test('a start that the next attempt may fix is not aborted at once, and a hopeless one is', () => {
  assert.match(
    text(report({ status: recorded('missing-tag'), image: 'nothing:1' }).life),
    /^does not start yet: image 'nothing:1' cannot be downloaded: docker.io cannot be reached/,
  )
  assert.match(
    text(report({ status: recorded('no-secret') }).life),
    /^does not start yet: the cluster refuses it: secret/,
  )
  assert.match(
    text(report({ status: recorded('invalid-name'), image: 'Not an image' }).life),
    /^will never start: 'Not an image' is not a reference/,
  )
})

/** A container that waits, with what its node says. */
const waiting = (reason: string, message: string): Status => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'worker', state: { waiting: { reason, message } } }],
})

test('errors of registries are distinguished, with and without a credential, whatever the image is called', () => {
  const image = 'registry.example/unauthorized/app:1'
  const said = (words: string) =>
    `failed to pull and unpack image "${image}": failed to resolve reference "${image}": ${words}`
  const life = (words: string, credential: boolean) =>
    text(report({ status: waiting('ErrImagePull', said(words)), image }, credential).life)
  assert.match(life(`${image}: not found`, false), /^will never start: .* registry.example has no such image/)
  assert.match(
    life('pull access denied, repository does not exist or may require authorization', false),
    /or it is private/,
  )
  assert.match(life('pull access denied, insufficient_scope: authorization failed', true), /or not for the credential/)
  assert.match(life('unexpected status from HEAD request: 401 Unauthorized', true), /does not accept the credential/)
  assert.match(life('unexpected status from HEAD request: 401 Unauthorized', false), /requires a credential/)
  assert.match(life('429 Too Many Requests - toomanyrequests', false), /^does not start yet: .*no more downloads/)
  assert.match(life('dial tcp 10.0.0.1:443: i/o timeout', false), /^does not start yet: .*cannot be reached/)
  assert.match(life('no match for platform in manifest: not found', false), /not built for a machine of this kind/)
  const again = `Back-off pulling image "${image}"`
  assert.equal(text(report({ status: waiting('ImagePullBackOff', again), image }).life), 'placed')
  const repeated = `${again}: ErrImagePull: ${said(`${image}: not found`)}`
  assert.match(text(report({ status: waiting('ImagePullBackOff', repeated), image }).life), /^will never start/)
})

test('a container that was gone when its node came back, as after a loss of power, was taken away', () => {
  for (const state of [
    { exitCode: 255, reason: 'Unknown' },
    { exitCode: 137, reason: 'ContainerStatusUnknown' },
  ]) {
    const containerStatuses = [{ name: 'worker', state: { terminated: state } }]
    const { cause } = exitIn(report({ status: { phase: 'Failed', containerStatuses } }).life)
    assert.deepEqual(cause, { kind: 'reclaimed', why: { kind: 'node_lost', node: 'node-1', said: '' } })
  }
  const containerStatuses = [{ name: 'worker', state: { terminated: { exitCode: 255, reason: 'Error' } } }]
  const { cause } = exitIn(report({ status: { phase: 'Failed', containerStatuses } }).life)
  assert.equal(cause.kind, 'ended')
})

test('a pod that its platform takes away says why, before and after its end', () => {
  const disruption = (reason: string, message: string) => ({
    phase: 'Running',
    conditions: [{ type: 'DisruptionTarget', status: 'True', reason, message }],
    containerStatuses: [{ name: 'worker', state: { running: {} } }],
  })
  const kinds = [
    ['PreemptionByScheduler', 'preempted'],
    ['EvictionByEvictionAPI', 'node_drained'],
    ['DeletionByTaintManager', 'node_drained'],
    ['DeletionByPodGC', 'node_lost'],
    ['TerminationByKubelet', 'evicted'],
  ] as const
  for (const [reason, kind] of kinds) {
    assert.deepEqual(report({ status: disruption(reason, 'why') }).leaving, { kind, node: 'node-1', said: 'why' })
  }
  assert.equal(report({ status: disruption('TerminationByKubelet', 'node shutdown') }).leaving?.kind, 'node_drained')
  assert.equal(report({ status: recorded('evicted-by-api') }).leaving?.kind, 'node_drained')
  const deleted = { deletionTimestamp: '2026-11-26T06:00:00Z', deletionGracePeriodSeconds: 30 }
  const leaving = report({ status: recorded('evicted-by-api'), metadata: deleted })
  assert.deepEqual([leaving.leaving?.kind, leaving.graceMs], ['node_drained', 30_000])

  const evicted = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }
  const exit = exitIn(report({ status: evicted }).life)
  assert.deepEqual(exit.cause, {
    kind: 'reclaimed',
    why: { kind: 'evicted', node: 'node-1', said: 'The node was low on resource: memory.' },
  })
  const shut = {
    phase: 'Failed',
    reason: 'Terminated',
    message: 'Pod was terminated in response to imminent node shutdown.',
  }
  assert.match(observedExitText(exitIn(report({ status: shut }).life)), /had to leave node node-1/)
  const refused = {
    phase: 'Failed',
    reason: 'OutOfcpu',
    message: 'Pod was rejected: Node did not have enough resource: cpu',
  }
  assert.equal(exitIn(report({ status: refused }).life).cause.kind, 'reclaimed', 'another node may take it')
})

test('a node that is silent is known by a pod that is not ready although its container is', () => {
  assert.equal(report({ status: recorded('on-lost-node-not-ready') }).isSilent, true)
  const starting: Status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'False', reason: 'ContainersNotReady' }],
    containerStatuses: [{ name: 'worker', state: { running: {} } }],
  }
  assert.equal(report({ status: starting }).isSilent, false)
})

test('an exact image is one that a registry knows', () => {
  const running = (imageID: string) => ({
    status: { phase: 'Running', containerStatuses: [{ name: 'worker', imageID, state: { running: {} } }] },
  })
  const digest = `sha256:${'a'.repeat(64)}`
  assert.equal(report(running(`docker.io/library/app@${digest}`)).imageId, `docker.io/library/app@${digest}`)
  assert.equal(report(running(`docker-pullable://app@${digest}`)).imageId, `app@${digest}`)
  assert.equal(report(running(digest)).imageId, null)
})

test('a signal that ended a program is named', () => {
  const ended = (exitCode: number): Status => ({
    phase: 'Failed',
    containerStatuses: [{ name: 'worker', state: { terminated: { exitCode, reason: 'Error' } } }],
  })
  assert.deepEqual(exitIn(report({ status: ended(137) }).life), {
    code: null,
    signal: 'SIGKILL',
    cause: { kind: 'ended' },
  })
  assert.deepEqual(exitIn(report({ status: ended(255) }).life).code, 255)
})
