import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  advice,
  changesBack,
  DECISIONS,
  errorLine,
  isPassing,
  type Mend,
  type MendFacts,
  mendsOf,
  mendsOfNote,
  needsAttention,
  noteText,
  sentence,
  toneOf,
} from '../../console/parts/mend.ts'
import { type ExplainContext, explainEndpoint, WAIT_CAUSES } from '../../src/core/observing/explain.ts'
import { placeAction } from '../../src/core/observing/explain-words.ts'
import type { Resource } from '../../src/core/workers/placement.ts'
import { START_REMEDIES } from '../../src/core/workers/start-remedy.ts'
import { anExit, aSnapshot, NOW } from '../support/snapshots.ts'

const ENDPOINT: NonNullable<MendFacts['endpoint']> = {
  workers: { min: 0, max: 3, idleTimeout: 10 },
  scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
  env: { A: '1' },
}

function facts(explained: Partial<MendFacts['explained']>, fields: Partial<MendFacts> = {}): MendFacts {
  const empty = { cause: 'running', summary: '', action: null, commands: [], notes: [] }
  return { id: 'mine', explained: { ...empty, ...explained }, endpoint: ENDPOINT, releases: null, ...fields }
}

/** What a situation of the server is mended with. */
function mendsFor(fields: Parameters<typeof aSnapshot>[0], around: Partial<ExplainContext> = {}): readonly Mend[] {
  const context = { capacity: { freeWorkers: null, bound: 'nothing' }, startFailure: null, nowMs: NOW, ...around }
  const { endpoint = {} } = fields
  const workers = { ...ENDPOINT.workers, max: endpoint.workersMax ?? ENDPOINT.workers.max }
  const explained = explainEndpoint(aSnapshot(fields), context)
  return mendsOf(facts(explained, { endpoint: { ...ENDPOINT, workers } }))
}

const titles = (mends: readonly Mend[]) => mends.map(({ title }) => title)
const one = { queued: 1, headQueuedAtMs: NOW - 3_000 }

test('there is a decision for every cause that the server knows, and for no other', () => {
  assert.deepEqual(Object.keys(DECISIONS).sort(), [...WAIT_CAUSES].sort())
})

test('whatever a person has to mend has an action, also where nothing but the cause is known', () => {
  for (const cause of WAIT_CAUSES.filter(needsAttention)) {
    const releases = { rollout: { state: 'STOPPED', workingVersion: 1 }, releases: [] }
    const commands = ['runyard endpoints update mine --max 4', 'runyard endpoints update mine --min 1']
    const [main] = mendsOf(facts({ cause, commands }, { releases }))
    assert.ok(main !== undefined, cause)
  }
})

test('without the right to read endpoints what is left does not change settings', () => {
  for (const cause of WAIT_CAUSES) {
    const mends = mendsOf(facts({ cause, commands: ['runyard endpoints update mine --max 4'] }, { endpoint: null }))
    assert.ok(
      mends.every(({ kind }) => kind !== 'patch'),
      cause,
    )
  }
})

test('a paused endpoint gets the worker that its explanation asks for', () => {
  const [main] = mendsFor({ queue: one, endpoint: { workersMax: 0 } })
  assert.deepEqual(main, {
    kind: 'patch',
    title: 'Allow 1 worker',
    changes: [{ name: 'Workers at most', from: '0', to: '1' }],
    body: { workers: { max: 1 } },
    isRelease: false,
  })
})

test('where all workers are busy one more is allowed, or as many as the waits of the last attempts speak for', () => {
  const busy = { queue: { ...one, inProgress: 1 }, endpoint: { workersMax: 1 }, workers: [{ held: 1 }] }
  assert.deepEqual(titles(mendsFor(busy)), ['Allow 2 workers'])
  const advised = mendsOf(
    facts({
      cause: 'max_reached',
      commands: ['runyard endpoints update mine --max 4'],
      notes: ['of the last 10 attempts 9 waited: runyard endpoints update mine --max 6; what that costs says ...'],
    }),
  )
  assert.deepEqual(titles(advised), ['Allow 6 workers'])
})

test('jobs that wait as long as the scaler lets them get another worker sooner', () => {
  const ready = { queue: { ...one, inProgress: 1 }, workers: [{ held: 1 }] }
  const [main] = mendsFor(ready)
  assert.equal(main?.title, 'Start another worker after 2 s of waiting')
  assert.deepEqual(main?.kind === 'patch' && main.body, { scaling: { type: 'QUEUE_DELAY', queueDelay: 2 } })
  const scaling = { type: 'REQUEST_COUNT', requestCount: 2 } as const
  const explained = { cause: 'running', action: 'wait, or choose a smaller scalerValue' } as const
  const counted = mendsOf(facts(explained, { endpoint: { ...ENDPOINT, scaling } }))
  assert.deepEqual(titles(counted), ['Start a worker for each request'])
  const least = mendsOf(facts(explained, { endpoint: { ...ENDPOINT, scaling: { ...scaling, requestCount: 1 } } }))
  assert.deepEqual(least, [], 'there is nothing smaller')
})

test('jobs of low priority alone get a worker that is kept ready', () => {
  const [main] = mendsFor({ queue: { queuedLowPriority: 3 } })
  assert.deepEqual(main?.kind === 'patch' && main.body, { workers: { min: 1 } })
})

test('a crash loop goes back to the release before, or is tried again; its output is a link away', () => {
  const crash = { queue: one, exits: [anExit()] }
  assert.deepEqual(titles(mendsFor(crash)), ['Try again now', 'See its output', 'Change the image'])
  const diff = (old: string, present: string) => [{ field: 'env.MODEL', old, new: present }]
  const released = (restoredVersion: number | null, workingVersion: number | null = null) => ({
    rollout: { state: 'COMPLETE', workingVersion },
    releases: [
      { version: 3, restoredVersion, diff: diff('b', 'c') },
      { version: 2, restoredVersion: null, diff: diff('a', 'b') },
      { version: 1, restoredVersion: null, diff: [] },
    ],
  })
  const first = (releases: MendFacts['releases']) => mendsOf(facts({ cause: 'crash_loop' }, { releases }))[0]
  assert.deepEqual(first(released(null)), { kind: 'rollback', title: 'Roll back to release 2', version: 2 })
  assert.equal(first(released(2))?.title, 'Roll back to release 1', 'release 2 is what crashes')
  assert.equal(first(released(1))?.title, 'Try again now', 'all older ones have been tried')
  const [present, ...older] = released(null).releases
  const restarted = { ...released(null), releases: [{ ...present!, diff: [] }, ...older] }
  assert.equal(first(restarted)?.title, 'Roll back to release 1', 'release 3 only restarted release 2')
  assert.equal(first(released(null, 1))?.title, 'Roll back to release 1, the last that worked')
})

test('a stopped rollout goes back to the release that goes on, also where something else is the cause', () => {
  const commands = ['runyard endpoints rollback mine 4', 'runyard logs w7']
  const mends = mendsOf(facts({ cause: 'rollout_stopped', commands }))
  assert.deepEqual(mends[0], { kind: 'rollback', title: 'Roll back to release 4, the last that worked', version: 4 })
  assert.ok(mends.some(mend => mend.kind === 'link' && mend.href === '/endpoints/mine/logs?worker=w7'))
  assert.deepEqual(titles(mendsOf(facts({ cause: 'max_reached', commands }))), [
    'Roll back to release 4, the last that worked',
  ])
})

test('a release that was stopped because it failed its jobs can be promoted all the same, after a look at the jobs', () => {
  const commands = ['runyard endpoints rollback mine 4', 'runyard endpoints promote mine 5']
  const mends = mendsOf(facts({ cause: 'rollout_stopped', commands }))
  assert.deepEqual(mends.slice(0, 3), [
    { kind: 'rollback', title: 'Roll back to release 4, the last that worked', version: 4 },
    {
      kind: 'link',
      title: 'See the failed requests',
      href: '/endpoints/mine/requests?status=FAILED,TIMED_OUT',
      needs: 'write',
    },
    { kind: 'promote', title: 'Promote release 5 all the same', version: 5 },
  ])
})

test('each missing secret opens the form of a new one with its name in it', () => {
  const startFailure = { kind: 'secrets_missing', names: ['HF', 'team/db key'.replace(' ', '-')] } as const
  const hrefs = mendsFor({ queue: one }, { startFailure }).flatMap(mend => (mend.kind === 'link' ? mend.href : []))
  assert.deepEqual(hrefs.slice(0, 2), ['/secrets?new=HF', '/secrets?new=team%2Fdb-key'])
})

test('a start that took too long gets twice the time, beside the other variables', () => {
  const explained = { cause: 'hung_start', summary: 'it did not ask for a job within 420 s of its start' } as const
  const body = (fields: Partial<MendFacts>) => {
    const [main] = mendsOf(facts(explained, fields))
    return main?.kind === 'patch' ? main.body.env : main?.title
  }
  assert.deepEqual(body({}), { A: '1', RUNPOD_INIT_TIMEOUT: '840' })
  const env = { RUNPOD_INIT_TIMEOUT: '600' }
  assert.deepEqual(body({ endpoint: { ...ENDPOINT, env } }), { RUNPOD_INIT_TIMEOUT: '1200' })
  const secret = { RUNPOD_INIT_TIMEOUT: '{{ RUNPOD_SECRET_time }}' }
  assert.equal(body({ endpoint: { ...ENDPOINT, env: secret } }), 'Allow more time (RUNPOD_INIT_TIMEOUT)')
})

test('every reason for which no worker can be started leads to where it is mended', () => {
  const places = Object.fromEntries(
    Object.entries(START_REMEDIES).map(([name, { cause, advice }]) => {
      const [main] = mendsOf(facts({ cause, action: advice }))
      return [name, main?.kind === 'link' ? main.href : main?.title]
    }),
  )
  const image = '/endpoints/mine/settings#image'
  const models = '/endpoints/mine/settings#models'
  assert.deepEqual(places, {
    engine: '/machine',
    cluster: '/machine',
    cluster_volume: '/endpoints/mine/settings#volumes',
    cluster_network: '/machine',
    secrets: '/secrets',
    settings: '/endpoints/mine/settings#env',
    volume: '/endpoints/mine/settings#volumes',
    engine_setting: '/machine',
    amd_driver: '/machine',
    podman: '/machine',
    container_init: '/machine',
    local_engine: '/machine',
    architecture: image,
    credential: '/registries',
    registry_public: '/endpoints/mine/settings#image',
    registry: '/machine',
    model_name: models,
    model_token: '/secrets',
    model_files: models,
    model_space: '/machine',
    model_hub: '/machine',
    handler: image,
    command: image,
    image_name: image,
    entry_point: image,
    disk: '/machine',
    gpu_toolkit: '/machine',
    download_limit: '/registries',
    memory: '/endpoints/mine/settings#hardware',
    access: '/machine',
    process_root: '/machine',
    other: image,
  })
})

test('whatever the machine lacks leads to the hardware of the endpoint, the machine, or the limits of the account', () => {
  const resources: Record<Resource, string | undefined> = {
    gpu: '/endpoints/mine/settings#hardware',
    gpu_type: '/endpoints/mine/settings#hardware',
    gpu_count: '/endpoints/mine/settings#hardware',
    cuda: '/endpoints/mine/settings#hardware',
    cpu: '/endpoints/mine/settings#hardware',
    memory: '/endpoints/mine/settings#hardware',
    account_workers: '/usage',
    account_gpus: '/usage',
    models: undefined,
    workers: '/machine',
  }
  for (const [resource, href] of Object.entries(resources)) {
    const [main] = mendsOf(facts({ cause: 'no_capacity', action: placeAction(resource as Resource) }))
    assert.equal(main?.kind === 'link' ? main.href : undefined, href, resource)
  }
})

test('the setting that a note advises can be applied, and a canary promoted or ended', () => {
  const apart = Array.from({ length: 10 }, (_, n) => {
    const queuedAtMs = n * 60_000
    return { queuedAtMs, startedAtMs: queuedAtMs + 30_000, finishedAtMs: queuedAtMs + 40_000, cold: true }
  })
  const exits = [1, 2].map(() => anExit({ stopReason: 'idle', placedAtMs: NOW - 90_000, readyAtMs: NOW - 60_000 }))
  const context = { capacity: { freeWorkers: null, bound: 'nothing' }, startFailure: null, nowMs: NOW, attempts: apart }
  const { notes } = explainEndpoint(aSnapshot({ exits }), context)
  const [mend] = mendsOfNote(notes[0]!, facts({}))
  assert.deepEqual(mend?.kind === 'patch' && [mend.title, mend.body], [
    'Keep idle workers for 30 s',
    { workers: { idleTimeout: 30 } },
  ])
  const canary =
    'release 3 is a canary with 10 % of the workers; promote it with runyard endpoints promote mine 3, or end it with runyard endpoints rollback mine 2'
  assert.deepEqual(titles(mendsOfNote(canary, facts({}))), [
    'Promote release 3 to all workers',
    'End the canary: back to release 2',
  ])
  assert.deepEqual(mendsOfNote('this machine has no GPU', facts({})), [])
})

test('a cause that only a newer server knows is shown as a wait without an action', () => {
  assert.deepEqual([toneOf('sunspots'), mendsOf(facts({ cause: 'sunspots' }))], ['wait', []])
})

test('what a rollback changes is told from the present values to those of the release', () => {
  const release = (version: number, field: string, old: unknown, present: unknown) => ({
    version,
    restoredVersion: null,
    diff: [{ field, old, new: present }],
  })
  const releases = [
    release(4, 'env.MODEL', 'b', 'c'),
    release(3, 'env.MODEL', 'a', 'b'),
    release(2, 'gpu', null, { count: 1 }),
    release(1, 'image', null, 'x'),
  ]
  const found = { rollout: { state: 'COMPLETE', workingVersion: null }, releases }
  assert.deepEqual(changesBack(found, 1), [
    { name: 'env.MODEL', from: 'c', to: 'a' },
    { name: 'gpu', from: '{"count":1}', to: '–' },
  ])
  assert.deepEqual(changesBack(null, 1), [])
})

test('of what a worker printed the line with the error is named', () => {
  const python = [
    'Traceback (most recent call last):',
    '  File "x.py", line 1',
    "ModuleNotFoundError: No module named 'torch'",
  ]
  const node = [
    'throw new Error("x")',
    '      ^',
    'Error: weights are missing',
    '    at file:///x.mjs:2:7',
    'Node.js v26',
  ]
  assert.deepEqual([python, node, ['loading']].map(errorLine), [python[2], node[2], null])
})

test('what to do is said without the commands that buttons stand for', () => {
  const { advice: said } = START_REMEDIES.secrets
  assert.equal(advice(said), 'create the secrets, or take them out of the environment')
  assert.equal(
    advice('wait; what it prints shows what takes long: runyard logs w1'),
    'wait; what it prints shows what takes long',
  )
})

test('a note is read without its commands, and one without commands whole', () => {
  const advised =
    'of the last 9 attempts 7 waited, 5 min in all: runyard endpoints update x --max 4; what that costs says runyard whatif x'
  assert.equal(noteText(advised), 'Of the last 9 attempts 7 waited, 5 min in all')
  const canary =
    'release 2 is a canary; promote it with runyard endpoints promote x 2, or end it with runyard endpoints rollback x 1'
  assert.equal(noteText(canary), 'Release 2 is a canary')
  assert.equal(
    noteText('this machine has no GPU, so workers run on the CPU'),
    'This machine has no GPU, so workers run on the CPU',
  )
})

test('what the server says is a sentence, and names keep their letters', () => {
  const said = ['no worker can be started', 'the last worker ended', 'paused is paused: workersMax is 0', '2 jobs wait']
  assert.deepEqual(said.map(sentence), [
    'No worker can be started',
    'The last worker ended',
    'paused is paused: workersMax is 0',
    '2 jobs wait',
  ])
})

test('a wait that has just begun may pass; a pause and a crash do not, and a slow clock hides nothing', () => {
  const passing = (cause: string, sinceMs: number | null) => isPassing({ cause, sinceMs }, 2_000, 10_000)
  assert.equal(passing('max_reached', 9_000), true)
  assert.deepEqual(
    [
      passing('max_reached', 8_000),
      passing('max_reached', null),
      passing('max_reached', 11_000),
      passing('paused', 9_000),
      passing('crash_loop', 9_000),
    ],
    [false, false, false, false, false],
  )
})
