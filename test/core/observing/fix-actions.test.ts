import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Endpoint } from '../../../src/core/endpoints/endpoint.ts'
import { ROLLED_OUT } from '../../../src/core/endpoints/rollout-facts.ts'
import type { MachineGpu, MachineParts } from '../../../src/core/hardware/inventory.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { type Action, actionCommand } from '../../../src/core/observing/action.ts'
import { type ExplainContext, explainEndpoint } from '../../../src/core/observing/explain.ts'
import { withRollout } from '../../../src/core/observing/explain-rollout.ts'
import { explanationView, WAIT_CAUSES } from '../../../src/core/observing/explanation.ts'
import type { OlderRelease } from '../../../src/core/observing/fix-actions.ts'
import type { Resource } from '../../../src/core/workers/placement.ts'
import type { StartFailure } from '../../../src/core/workers/start-failure.ts'
import type { WorkerProblem } from '../../../src/core/workers/worker-problem.ts'
import { anExit, aQueued, aSnapshot, NOW } from '../../support/snapshots.ts'

type Fields = Parameters<typeof aSnapshot>[0]

const one = { queued: 1, headQueuedAtMs: NOW - 3_000 }
const NO_MODULE = { lastLines: ["ModuleNotFoundError: No module named 'torch'"] }
const IMAGE = { image: 'team/model:1', env: {} }
const FOLDER = { image: 'dir:/srv/model', env: {} }

function explained(fields: Fields, around: Partial<ExplainContext> = {}) {
  const context = { capacity: { freeWorkers: null, bound: 'nothing' }, startFailure: null, nowMs: NOW, ...around }
  return explainEndpoint(aSnapshot({ queue: one, ...fields }), context)
}

/** The titles of the actions, the main one first. */
function titles(fields: Fields, around: Partial<ExplainContext> = {}): readonly string[] {
  return explained(fields, around).actions.map(({ title }) => title)
}

function release(version: number, fields: readonly string[], more: Partial<OlderRelease> = {}): OlderRelease {
  const diff = fields.map(field => ({ field, old: version - 1, new: version }))
  return { version, restores: null, image: null, hasWorked: true, diff, ...more }
}

/** The rollback that is offered at release 3, whose workers end like this. */
function rollback(
  releases: readonly OlderRelease[],
  exit: Parameters<typeof anExit>[1] = NO_MODULE,
): string | undefined {
  const fields = { endpoint: { version: 3 }, exits: [anExit({ version: 3 }, exit)] }
  const actions = explained(fields, { releases, template: IMAGE }).actions
  return actions.find(({ kind }) => kind === 'rollback')?.title
}

function gpuMachine(...names: readonly string[]): MachineParts {
  const gpus = names.map((name, index): MachineGpu => {
    const memoryGb = name.includes('A100') ? 80 : 24
    const known = { uuid: null, vendor: 'NVIDIA', driver: null, cuda: '12.4', mig: null, problem: null } as const
    return { index, name, memoryGb, ...known } as MachineGpu
  })
  return { vcpus: 8, memoryGb: 64, gpus, hadGpus: gpus.length > 0, problem: null }
}

function onGpus(pools: readonly string[], count = 1): Partial<Endpoint> {
  const compute = { kind: 'gpu', pools, excludedTypes: [], count, allowedCudaVersions: [], minCudaVersion: null }
  return { compute: compute as unknown as Endpoint['compute'] }
}

const lacking = (resource: Resource) => ({
  queuedWorkers: [aQueued({ queuedAtMs: NOW - 4_000, resource, reason: 'x' })],
})

test('only a release that has had a ready worker is offered for a rollback', () => {
  const never = { hasWorked: false }
  assert.equal(rollback([release(3, ['image']), release(2, ['image'], never), release(1, [], never)]), undefined)
  assert.equal(
    rollback([release(3, ['image']), release(2, ['image'], never), release(1, [])]),
    'Roll back to release 1, the last that worked',
  )
})

test('a release that differs just in hardware is no way back from a failure of the program', () => {
  assert.equal(rollback([release(3, ['gpu', 'disk', 'cpu']), release(2, [])]), undefined)
  assert.equal(
    rollback([release(3, ['gpu']), release(2, ['env.MODEL']), release(1, [])]),
    'Roll back to release 1, which worked',
  )
  const memory = { cause: { kind: 'out_of_memory', limitMb: 400 } } as const
  assert.equal(rollback([release(3, ['cpu']), release(2, [])], memory), 'Roll back to release 2, the last that worked')
})

test('a release with the same configuration as the present one is no way back', () => {
  const [present, restarted, first] = [release(3, []), release(2, []), release(1, [])]
  assert.equal(rollback([present, restarted, first]), undefined)
  const undone = { field: 'env.A', old: 'b', new: 'a' }
  const changed = { field: 'env.A', old: 'a', new: 'b' }
  const back = [release(3, [], { diff: [undone] }), release(2, [], { diff: [changed] }), first]
  assert.equal(rollback(back), 'Roll back to release 2, the last that worked', 'release 1 is what crashes')
  assert.equal(
    rollback([release(3, [], { restores: 1 }), release(2, ['image']), first]),
    undefined,
    'the one that was restored and those after it were tried',
  )
  const moved = [release(3, [], { image: 'a@sha256:2' }), release(2, [], { image: 'a@sha256:1' })]
  assert.equal(rollback(moved), 'Roll back to release 2, the last that worked', 'the tag means another image now')
})

test('a stopped rollout is not taken back to a release with the same program', () => {
  const exits = [1, 2, 3].map(() => anExit({ version: 3, readyAtMs: null }, NO_MODULE))
  const configuration = { endpoint: aSnapshot({}).endpoint, template: IMAGE }
  const working = { version: 2, configuration } as never
  const snapshot = aSnapshot({
    endpoint: { version: 3 },
    rollout: { ...ROLLED_OUT, wasReady: false, crashes: 3, working },
    exits,
  })
  const explanation = explained({ queue: {} })
  const stopped = (field: string) => {
    const facts = { releases: [release(3, [field], { hasWorked: false }), release(2, [])], template: IMAGE }
    const { cause, advice, actions } = withRollout(explanation, snapshot, null, facts)
    assert.equal(cause, 'rollout_stopped')
    return { advice, main: actions[0]?.title }
  }
  assert.equal(stopped('image').main, 'Roll back to release 2, the last that worked')
  assert.match(
    stopped('image').advice ?? '',
    /^go back to release 2, or change the endpoint: install the Python module/,
  )
  assert.equal(stopped('gpu').main, 'See its output')
  assert.match(stopped('gpu').advice ?? '', /^change the endpoint: install the Python module/)
})

test('where containers are off, the server is started with an engine, or a folder is run', () => {
  for (const startFailure of [
    { kind: 'containers_off' },
    { kind: 'engine_not_configured', image: 'a' },
  ] satisfies StartFailure[]) {
    const { actions } = explained({}, { startFailure })
    assert.deepEqual(
      actions.map(({ title }) => title),
      ['Start the server with a container engine', 'Run a folder instead of an image'],
    )
    assert.equal(actionCommand(actions[0]!, 'mine' as EndpointId), 'runyard serve --docker auto')
  }
})

test('other GPUs are offered only where the machine has a type that the endpoint does not choose yet', () => {
  const card = 'NVIDIA GeForce RTX 4090'
  const taken = { ...lacking('gpu'), endpoint: onGpus(['ADA_24']) }
  assert.deepEqual(titles(taken, { parts: gpuMachine(card, card) }), ['See who holds the machine'])
  assert.deepEqual(titles(taken, { parts: gpuMachine(card, 'NVIDIA A100 80GB PCIe') }), [
    'Choose other GPUs',
    'See who holds the machine',
  ])
  const both = { ...lacking('gpu'), endpoint: onGpus(['ADA_24', 'AMPERE_80']) }
  assert.deepEqual(titles(both, { parts: gpuMachine(card, 'NVIDIA A100 80GB PCIe') }), ['See who holds the machine'])
})

test('an endpoint that asks for GPUs that the machine does not have gets those that it has', () => {
  const card = 'NVIDIA GeForce RTX 4090'
  const [pools] = explained(
    { ...lacking('gpu_type'), endpoint: onGpus(['AMPERE_80']) },
    { parts: gpuMachine(card) },
  ).actions
  assert.equal(pools?.title, 'Use the GPUs of this machine (ADA_24)')
  assert.equal(actionCommand(pools!, 'mine' as EndpointId), 'runyard endpoints update mine --gpu ADA_24')
  const [count] = explained(
    { ...lacking('gpu_count'), endpoint: onGpus(['ADA_24'], 4) },
    { parts: gpuMachine(card, card) },
  ).actions
  assert.equal(count?.title, 'Ask for 2 GPUs a worker')
  assert.equal(actionCommand(count!, 'mine' as EndpointId), 'runyard endpoints update mine --gpu-count 2')
})

test('no more workers are offered than the GPUs of the machine can take, or than an endpoint may have', () => {
  const card = 'NVIDIA GeForce RTX 4090'
  const busy = { queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] }
  const full = { ...busy, endpoint: { ...onGpus(['ADA_24']), workersMax: 1 } }
  const alone = explained(full, { parts: gpuMachine(card) })
  assert.deepEqual([alone.cause, alone.actions], ['max_reached', []])
  assert.equal(alone.advice, 'wait; the GPUs of this machine take no further worker')
  assert.deepEqual(titles(full, { parts: gpuMachine(card, card) }), ['Allow 2 workers'])
  assert.deepEqual(titles({ ...busy, endpoint: { workersMax: 1 } }), ['Allow 2 workers'])
})

test('a limit of the account leads to its usage, and not to the machine', () => {
  for (const resource of ['account_workers', 'account_gpus'] as const)
    assert.deepEqual(titles(lacking(resource)), ['See what the account uses'])
})

test('a crash in a folder offers no change of an image', () => {
  const crash = { exits: [anExit({}, NO_MODULE)] }
  assert.deepEqual(titles(crash, { template: FOLDER }), ['Try again now', 'See its output'])
  assert.deepEqual(titles(crash, { template: IMAGE }), ['Try again now', 'See its output', 'Change the image'])
})

test('a failure that is checked again by itself needs no other try', () => {
  for (const startFailure of [
    { kind: 'engine_away', how: 'lost', address: null, said: '' },
    { kind: 'secrets_missing', names: ['HF'] },
    { kind: 'folder_missing', folder: '/srv/x' },
  ] satisfies StartFailure[])
    assert.ok(!explained({}, { startFailure }).actions.some(({ kind }) => kind === 'restart'))
  assert.ok(explained({ exits: [anExit()] }).actions.some(({ kind }) => kind === 'restart'))
})

test('a remedy is the main action where it is known, and comes before another try', () => {
  const main = (exit: Parameters<typeof anExit>[1], problem: WorkerProblem | null = null) =>
    titles({ exits: [anExit({ problem }, exit)] }, { template: IMAGE })[0]
  assert.equal(main({ lastLines: ['GatedRepoError: 401'] }), 'Save a token as a secret')
  assert.equal(
    main({ lastLines: ["OSError: [Errno 30] Read-only file system: '/x/models--a'"] }),
    'Run the files that the release has',
  )
  assert.equal(main({ cause: { kind: 'disk_full', limitGb: 5, of: 'container' } }), 'Give workers a larger disk')
  assert.equal(main({ cause: { kind: 'out_of_memory', limitMb: 400 } }), 'Give workers more memory')
  assert.equal(main({}, { kind: 'hung_start', limitS: 420 }), 'Allow 14 min for the start')
})

test('twice the time for a start is set, and a value of a secret is changed by hand', () => {
  const problem: WorkerProblem = { kind: 'hung_start', limitS: 420 }
  const exits = [anExit({ stopReason: 'hung_start', problem })]
  const main = (env: Record<string, string>) => explained({ exits }, { template: { image: 'a', env } }).actions[0]!
  const set = { kind: 'set', field: 'env.RUNPOD_INIT_TIMEOUT', isRelease: true } as const
  assert.deepEqual(main({}), { ...set, title: 'Allow 14 min for the start', from: null, value: '840' })
  assert.deepEqual(main({ RUNPOD_INIT_TIMEOUT: '600' }), {
    ...set,
    title: 'Allow 20 min for the start',
    from: '600',
    value: '1200',
  })
  for (const value of ['{{ RUNPOD_SECRET_time }}', '86400'])
    assert.equal(main({ RUNPOD_INIT_TIMEOUT: value }).title, 'Allow more time (RUNPOD_INIT_TIMEOUT)')
})

test('each missing secret has an action with its name', () => {
  const startFailure = { kind: 'secrets_missing', names: ['HF', 'team/db-key'] } as const
  const actions = explained({}, { startFailure }).actions.filter(({ kind }) => kind === 'open')
  assert.deepEqual(
    actions.slice(0, 2).map(action => actionCommand(action, 'mine' as EndpointId)),
    ['runyard secrets create --name HF', 'runyard secrets create --name team/db-key'],
  )
})

test('jobs that wait as long as the scaler lets them get another worker sooner, and requests do not', () => {
  const ready = { queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] }
  const [main] = explained(ready).actions
  assert.equal(main?.title, 'Start another worker after 2 s of waiting')
  assert.equal(actionCommand(main!, 'mine' as EndpointId), 'runyard endpoints update mine --scaler QUEUE_DELAY:2')
  const least = { endpoint: { scaler: { type: 'QUEUE_DELAY', queueDelayS: 1 } as const } }
  assert.deepEqual(explained({ ...ready, ...least, queue: { ...ready.queue, headQueuedAtMs: NOW } }).actions, [])
})

test('a worker that starts shows its output once it may have some', () => {
  const starting = { state: 'STARTING', readyAtMs: null, idleSinceMs: null, placedAtMs: NOW - 60_000 } as const
  assert.deepEqual(titles({ workers: [{ ...starting, startedAtMs: NOW - 59_000 }] }), ['See its output'])
  assert.deepEqual(titles({ workers: [{ ...starting, startedAtMs: null, pullStartedAtMs: NOW - 5_000 }] }), [])
})

test('a paused endpoint is given as many workers as it had', () => {
  const actions = (pausedFrom: { min: number; max: number } | null) =>
    explained({ endpoint: { workersMax: 0, pausedFrom } }).actions.map(({ title }) => title)
  assert.deepEqual(actions({ min: 1, max: 5 }), ['Allow 5 workers'])
  assert.deepEqual(actions(null), ['Allow 1 worker'])
})

test('the JSON of an explanation has the commands of its actions, and says which action follows from which note', () => {
  const idle = anExit({ stopReason: 'idle', placedAtMs: NOW - 90_000, readyAtMs: NOW - 60_000 })
  const paused = explained({ endpoint: { workersMax: 0 }, exits: [idle, idle] })
  const view = explanationView(paused, 'mine' as EndpointId)
  assert.deepEqual(view.commands, ['runyard endpoints update mine --max 1'])
  assert.deepEqual(
    view.actions.map(({ title, note, command }) => [title, note, command]),
    [
      ['Allow 1 worker', null, 'runyard endpoints update mine --max 1'],
      ['Keep idle workers for 30 s', 0, 'runyard endpoints update mine --idle-timeout 30'],
    ],
  )
  assert.match(view.notes[0]!, /^workers of mine take 30 s to start/)
  assert.ok(WAIT_CAUSES.includes(view.cause))
})

test('a command is quoted for the shell, and what a person has to choose is not', () => {
  const action: Action = { kind: 'set', title: '', field: 'env.A', from: null, value: "it's", isRelease: true }
  assert.equal(actionCommand(action, 'mine' as EndpointId), "runyard endpoints update mine --env 'A=it'\\''s'")
  const volumes: Action = { kind: 'open', title: '', page: 'settings', part: 'volumes' }
  assert.equal(actionCommand(volumes, 'mine' as EndpointId), 'runyard endpoints update mine --volume <volume>')
})
