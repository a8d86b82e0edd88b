import assert from 'node:assert/strict'
import type { EndpointId, TemplateId, WorkerId } from '../../src/core/ids.ts'
import type { ListedKind } from '../../src/ports/store/store.ts'
import {
  type Cases,
  DONE,
  E1,
  E2,
  EXIT,
  jobId,
  makeEndpoint,
  makeJob,
  makeTemplate,
  makeWorker,
  NO_SUSPECTS,
  OWNER,
  STRANGER,
  T0,
  TPL,
  W1,
  W2,
} from './store-world.ts'

const ZERO = { completed: 0, failed: 0, retried: 0, averageExecutionMs: null }

/** Endpoints, what is known of them, and what goes with them. */
export const endpointCases: Cases = {
  'an endpoint is kept as it was given': async ({ store: { endpoints } }) => {
    const gpu = {
      kind: 'gpu',
      pools: ['ADA_24'],
      excludedTypes: ['NVIDIA L4'],
      count: 2,
      allowedCudaVersions: ['12.8'],
      minCudaVersion: null,
    } as const
    const endpoint = makeEndpoint(E2, { compute: gpu, type: 'LOAD_BALANCER', flashboot: 'FLASHBOOT', workersMin: 1 })
    await endpoints.insert(endpoint)
    assert.deepEqual(await endpoints.find(E2), endpoint)
    assert.equal(await endpoints.find('e3' as EndpointId), null)
    assert.deepEqual((await endpoints.snapshot(E2))?.counters, ZERO)
  },

  'endpoints are found by their name, the oldest first, and only those of their owner': async ({
    store: { endpoints },
  }) => {
    const of = (id: string, more: object) => makeEndpoint(id, { name: 'qwen', ...more })
    const [younger, older] = [of('e4', { createdAtMs: T0 + 2 }), of('e3', { createdAtMs: T0 + 1 })]
    for (const endpoint of [younger, older, of('e5', { owner: STRANGER }), of('e6', { name: 'qwen2' })])
      await endpoints.insert(endpoint)
    assert.deepEqual(await endpoints.named(OWNER, 'qwen'), [older, younger])
    assert.deepEqual(await endpoints.named(OWNER, 'QWEN'), [])
    await endpoints.remove(older.id, T0)
    assert.deepEqual(await endpoints.named(OWNER, 'qwen'), [younger])
  },

  'endpoints are found by the beginning of their names with their templates, by name, up to a limit': async ({
    store: { endpoints, templates },
  }) => {
    const template = makeTemplate('t2', { name: 'of the app', env: { RUNPOD_DEV_APP: 'shop' } })
    await templates.insert(template)
    const of = (id: string, name: string, more: object = {}) =>
      makeEndpoint(id, { name, templateId: template.id, ...more })
    const [add, sum] = [of('e4', 'dev-shop-add'), of('e3', 'dev-shop-süm')]
    const others = [of('e5', 'dev-shop-add', { owner: STRANGER }), of('e6', 'dev-shoq'), of('e7', 'dev-sho')]
    for (const endpoint of [sum, add, ...others]) await endpoints.insert(endpoint)
    const found = await endpoints.beginning(OWNER, 'dev-shop-', 10)
    assert.deepEqual(found, [
      { endpoint: add, template },
      { endpoint: sum, template },
    ])
    assert.deepEqual(await endpoints.beginning(OWNER, 'dev-shop-', 1), found.slice(0, 1))
    assert.deepEqual(await endpoints.beginning(OWNER, 'DEV', 10), [])
  },

  'an alias of models has its endpoints in their order, for its owner alone': async ({ store: { modelAliases } }) => {
    const alias = (name: string, ...ids: string[]) => {
      const endpointIds = ids as EndpointId[]
      return { owner: OWNER, name, endpointIds, createdAtMs: T0 }
    }
    assert.equal(await modelAliases.save(alias('gpt-4o', 'e2', 'e1')), true)
    assert.equal(await modelAliases.save({ ...alias('gpt-4o', 'e9'), owner: STRANGER }), true)
    assert.equal(await modelAliases.save(alias('a/b', 'e1')), true)
    assert.deepEqual(await modelAliases.find(OWNER, 'gpt-4o'), alias('gpt-4o', 'e2', 'e1'))
    assert.equal(await modelAliases.find(OWNER, 'GPT-4O'), null)
    const later = { ...alias('gpt-4o', 'e1'), createdAtMs: T0 + 5 }
    assert.equal(await modelAliases.save(later), true)
    assert.deepEqual(await modelAliases.list(OWNER), [alias('a/b', 'e1'), alias('gpt-4o', 'e1')])
    assert.deepEqual(
      [await modelAliases.remove(OWNER, 'gpt-4o'), await modelAliases.remove(OWNER, 'gpt-4o')],
      [true, false],
    )
    assert.equal((await modelAliases.list(STRANGER)).length, 1)
    for (let at = 0; at < 199; at += 1) assert.equal(await modelAliases.save(alias(`n${at}`, 'e1')), true)
    assert.equal(await modelAliases.save(alias('one-more', 'e1')), false)
    assert.equal(await modelAliases.save(alias('n1', 'e2')), true)
  },

  'the models that a worker said are kept, the last of each endpoint, as long as it exists': async world => {
    const { endpoints, servedModels } = world.store
    const served = (endpointId: EndpointId, version: number, at: number, ...models: string[]) => {
      return { endpointId, version, models, saidAtMs: T0 + at }
    }
    await endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    assert.deepEqual(await servedModels.of([E1, E2]), [])
    await servedModels.save(served(E1, 1, 5, 'a', 'b \u0000 \ud800 ü'))
    await servedModels.save(served(E2, 3, 5))
    const none = 'none' as EndpointId
    await servedModels.save(served(none, 1, 5, 'a'))
    const all = await servedModels.of([none, E2, E1])
    assert.deepEqual(
      all.sort((a, b) => a.version - b.version),
      [served(E1, 1, 5, 'a', 'b \u0000 \ud800 ü'), served(E2, 3, 5)],
    )
    await servedModels.save(served(E1, 2, 4, 'c'))
    assert.deepEqual(await servedModels.of([E1]), [served(E1, 2, 4, 'c')], 'also when the time was set back')
    assert.deepEqual(await servedModels.of([]), [])
    await endpoints.remove(E1, T0)
    assert.deepEqual(await servedModels.of([E1]), [])
    await servedModels.save(served(E1, 2, 7, 'c'))
    assert.deepEqual(await servedModels.of([E1]), [])
  },

  'a domain has one endpoint of all accounts, and is free again when that has another one, none, or is gone':
    async world => {
      const { endpoints } = world.store
      const [chat, other] = ['chat.example.org', 'other.example.org']
      const mine = makeEndpoint(E2, { type: 'LOAD_BALANCER', domain: chat })
      await endpoints.insert(mine)
      assert.deepEqual(await endpoints.find(E2), mine)
      assert.deepEqual(await endpoints.ofDomain(chat), { domain: chat, endpointId: E2, owner: OWNER })
      const foreign = makeEndpoint('e3', { owner: STRANGER, domain: chat })
      const taken = (act: () => Promise<unknown>) =>
        assert.rejects(act, { code: 'conflict', message: /^the domain chat\.example\.org is taken: another endpoint/ })
      await taken(() => endpoints.insert(foreign))
      assert.equal(await endpoints.find('e3' as EndpointId), null, 'nothing of it is kept')
      const third = { ...foreign, domain: null }
      await endpoints.insert(third)
      await taken(() => endpoints.replace(foreign, third, T0))
      assert.deepEqual(await endpoints.find('e3' as EndpointId), third)

      const moved = { ...mine, domain: other }
      assert.equal(await endpoints.replace(moved, mine, T0), true)
      assert.equal(await endpoints.replace(foreign, third, T0), true)
      assert.deepEqual(
        (await endpoints.domains()).map(({ domain, endpointId }) => [domain, endpointId]),
        [
          [chat, 'e3'],
          [other, E2],
        ],
      )
      assert.equal(await endpoints.replace({ ...moved, domain: null }, moved, T0), true)
      assert.equal(await endpoints.ofDomain(other), null)
      await endpoints.remove('e3' as EndpointId, T0)
      assert.deepEqual(await endpoints.domains(), [])
    },

  'two endpoints that ask for a domain at once do not both have it': async ({ store: { endpoints } }) => {
    const named = ['e3', 'e4', 'e5', 'e6'].map(id => makeEndpoint(id, { domain: 'chat.example.org' }))
    const done = await Promise.allSettled(named.map(endpoint => endpoints.insert(endpoint)))
    assert.deepEqual(done.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected', 'rejected'])
    assert.equal((await endpoints.domains()).length, 1)
  },

  'the list has an owner’s endpoints, oldest first; ids are of all owners': async ({ store: { endpoints } }) => {
    await endpoints.insert(makeEndpoint('e3', { createdAtMs: T0 - 1 }))
    await endpoints.insert(makeEndpoint(E2, { owner: STRANGER }))
    assert.deepEqual(
      (await endpoints.list(OWNER)).map(({ id }) => id),
      ['e3', E1],
    )
    assert.deepEqual(await endpoints.ids(), [E1, E2, 'e3'])
  },

  'tasks have lists of their own, start no worker again after the end of theirs, and are removed later':
    async world => {
      const { store } = world
      const { endpoints, workers } = store
      for (const id of ['t1', 't2', 't3']) {
        await endpoints.insert(makeEndpoint(id, { runsOnce: true, workersMin: 1, workersMax: 1 }))
      }
      const idsOf = async (kind?: ListedKind) => (await endpoints.list(OWNER, undefined, kind)).map(({ id }) => id)
      assert.deepEqual(
        [await idsOf(), await idsOf('tasks'), await idsOf('all')],
        [[E1], ['t1', 't2', 't3'], [E1, 't1', 't2', 't3']],
      )
      const listed = await endpoints.listed(OWNER, { after: null, limit: 2 }, 'tasks')
      assert.deepEqual(
        listed.map(({ snapshot }) => [snapshot.endpoint.id, snapshot.endpoint.runsOnce]),
        [
          ['t1', true],
          ['t2', true],
        ],
      )
      const serves = { port: 80, healthPort: 80, healthPath: '/ping', initTimeoutMs: 1_000 }
      await world.worker('w1', { endpointId: 't1' as EndpointId, serves: { ...serves, once: true } })
      await world.worker('w2', { endpointId: 't2' as EndpointId, serves: { ...serves, once: true } })
      await world.worker('w3', { serves })
      await workers.exited('w1' as WorkerId, EXIT, T0 + 10)
      await workers.exited('w3' as WorkerId, EXIT, T0 + 10)
      const most = async (id: string) => (await endpoints.find(id as EndpointId))?.workersMax
      assert.deepEqual([await most('t1'), await most('t2')], [0, 1])
      assert.ok((await most(E1))! > 0, 'another endpoint goes on')
      assert.deepEqual(await endpoints.endedTasks(T0 + 10, 10), [])
      assert.deepEqual(await endpoints.endedTasks(T0 + 11, 10), ['t1'])
    },

  'tasks of workers are counted below the first starter, and found once what started them is removed': async ({
    store: { endpoints },
  }) => {
    const workers = { runsOnce: true, workersMin: 1, workersMax: 1 } as const
    const start = (id: string, starters: string[], more: object = {}) =>
      endpoints.insert(makeEndpoint(id, { ...workers, starters: starters as EndpointId[], ...more }))
    await start('t0', [])
    await start('t1', [E1])
    await start('t2', [E1, 't1'])
    await start('t3', [E1], { workersMin: 0, workersMax: 0 })
    await start('t4', ['t0'])
    assert.deepEqual((await endpoints.find('t2' as EndpointId))?.starters, [E1, 't1'])
    const started = (root: string) => endpoints.startedTasks(root as EndpointId)
    assert.deepEqual(await started(E1), { running: 2, ended: 1 })
    assert.deepEqual(await started('t0'), { running: 1, ended: 0 })
    assert.deepEqual(await started('t1'), { running: 0, ended: 0 })
    assert.deepEqual(await endpoints.orphanedTasks(10), [])
    await endpoints.remove('t1' as EndpointId, T0)
    assert.deepEqual(await endpoints.orphanedTasks(10), ['t2'])
    await endpoints.remove(E1, T0)
    assert.deepEqual(await endpoints.orphanedTasks(10), ['t2', 't3'])
    assert.deepEqual(await endpoints.orphanedTasks(1), ['t2'])
  },

  'a list has of each endpoint what its snapshot has, with the exit of the worker that ended last': async world => {
    const { store } = world
    await store.templates.insert(makeTemplate('t2', { image: 'other:2' }))
    await store.endpoints.insert(makeEndpoint(E2, { templateId: 't2' as TemplateId, createdAtMs: T0 + 1 }))
    await store.endpoints.insert(makeEndpoint('e3', { owner: STRANGER }))
    await world.holder('w1', 'j1')
    await world.job('j2', { queuedAtMs: T0 + 5 })
    for (const [id, endedAtMs] of [
      ['w2', T0 + 10],
      ['w3', T0 + 20],
    ] as const) {
      await world.worker(id)
      await store.workers.exited(id as WorkerId, EXIT, endedAtMs)
    }
    const waiting = { owner: OWNER, endpointId: E2, version: 1, queuedAtMs: T0, reason: 'none' }
    const times = { downloadStartedAtMs: null, downloadEndedAtMs: null }
    await store.queuedWorkers.replace(E2, [{ ...waiting, ...times, id: 'w9' as WorkerId, resource: 'gpu' }])
    const listed = await store.endpoints.listed(OWNER, { after: null, limit: 10 })
    assert.deepEqual(
      listed.map(({ image, snapshot }) => [snapshot.endpoint.id, image]),
      [
        [E1, 'dir:worker'],
        [E2, 'other:2'],
      ],
    )
    for (const { snapshot } of listed) {
      const whole = (await store.endpoints.snapshot(snapshot.endpoint.id))!
      assert.deepEqual(snapshot, { ...whole, exits: whole.exits.slice(0, 1) })
    }
    assert.deepEqual(listed[0]?.snapshot.exits[0]?.id, 'w3')
    const after = { createdAtMs: T0, id: E1 }
    const rest = await store.endpoints.listed(OWNER, { after, limit: 1 })
    assert.deepEqual(
      rest.map(({ snapshot }) => snapshot.endpoint.id),
      [E2],
    )
    assert.deepEqual(await store.endpoints.listed('nobody' as typeof OWNER, { after: null, limit: 1 }), [])
  },

  'a list knows the release to fall back to of a release that has not worked': async world => {
    const { store } = world
    await world.worker()
    const before = (await store.endpoints.find(E1))!
    await store.endpoints.replace({ ...before, version: 2, env: { A: '2' } }, before, T0)
    const [listed] = await store.endpoints.listed(OWNER, { after: null, limit: 1 })
    const whole = await store.endpoints.snapshot(E1)
    assert.equal(listed?.snapshot.rollout.working?.version, 1)
    assert.deepEqual(listed?.snapshot.rollout, whole?.rollout)
  },

  'an endpoint is replaced while it is as the caller has seen it': async ({ store: { endpoints, templates } }) => {
    await templates.insert(makeTemplate('t2'))
    const before = (await endpoints.find(E1))!
    const changed = { ...before, name: 'new', templateId: 't2' as TemplateId, version: 2, env: {}, workersMax: 7 }
    assert.equal(await endpoints.replace(changed, { ...before, workersMax: 8 }, T0), false)
    assert.equal(await endpoints.replace(changed, { ...before, version: 2 }, T0), false)
    assert.equal(await endpoints.replace(changed, before, T0), true)
    assert.deepEqual(await endpoints.find(E1), changed)
    assert.equal(await endpoints.replace({ ...changed, name: 'newer', version: 3 }, before, T0), false)
    assert.equal(await endpoints.replace({ ...changed, name: 'same version' }, changed, T0), true)
    assert.equal(await endpoints.replace(changed, changed, T0), false, 'the version is the same, the name is not')
    assert.equal(await endpoints.replace(makeEndpoint('gone'), makeEndpoint('gone'), T0), false)
  },

  'of several who replace one endpoint at once, one is first': async ({ store: { endpoints } }) => {
    const before = (await endpoints.find(E1))!
    const tries = Array.from({ length: 10 }, (_, n) => endpoints.replace({ ...before, name: `${n}` }, before, T0))
    assert.equal((await Promise.all(tries)).filter(won => won).length, 1)
  },

  'an endpoint comes with a template of its own, and takes it along': async ({ store: { endpoints, templates } }) => {
    const own = makeTemplate('own', { listed: false })
    await endpoints.insert(makeEndpoint(E2, { templateId: own.id }), own)
    assert.deepEqual(await templates.find(OWNER, own.id), own)
    assert.deepEqual(await templates.users(own.id), [E2])
    await assert.rejects(endpoints.insert(makeEndpoint('e3', { templateId: own.id }), own), { code: 'conflict' })
    assert.equal(await endpoints.find('e3' as EndpointId), null)
    await endpoints.remove(E2, T0)
    assert.equal(await templates.find(OWNER, own.id), null)
    await endpoints.remove(E1, T0)
    assert.notEqual(await templates.find(OWNER, TPL), null, 'a listed one stays')
  },

  'a template that several endpoints have goes with the last, though it is unlisted': async ({ store }) => {
    const { endpoints, templates } = store
    const own = makeTemplate('own', { listed: false })
    await endpoints.insert(makeEndpoint(E2, { templateId: own.id }), own)
    await endpoints.insert(makeEndpoint('e3', { templateId: own.id }))
    await endpoints.remove(E2, T0)
    assert.notEqual(await templates.find(OWNER, own.id), null)
    await endpoints.remove('e3' as EndpointId, T0)
    assert.equal(await templates.find(OWNER, own.id), null)
  },

  'an endpoint changes together with its own template, or neither does': async ({ store }) => {
    const { endpoints, templates } = store
    const own = makeTemplate('own', { listed: false })
    const before = (await endpoints.find(E1))!
    const copied = { ...before, templateId: own.id, version: 2 }
    assert.equal(await endpoints.replace(copied, { ...before, version: 9 }, T0, own), false)
    assert.equal(await templates.find(OWNER, own.id), null)
    assert.equal(await endpoints.replace(copied, before, T0, own), true)
    const changed = { ...own, image: 'image:2' }
    assert.equal(await endpoints.replace({ ...copied, version: 3 }, copied, T0, changed), true)
    assert.deepEqual(await templates.find(OWNER, own.id), changed)
    assert.equal((await endpoints.find(E1))?.version, 3, 'one new version for both')
    await assert.rejects(
      endpoints.replace({ ...copied, name: 'x', version: 4 }, { ...copied, version: 3 }, T0, {
        ...changed,
        name: makeTemplate(TPL).name,
      }),
      { code: 'conflict' },
    )
    assert.equal((await endpoints.find(E1))?.version, 3)
    const back = { ...copied, version: 4, templateId: TPL }
    assert.equal(await endpoints.replace(back, { ...copied, version: 3 }, T0), true)
    assert.equal(await templates.find(OWNER, own.id), null, 'nobody has it any more')
  },

  'lists come in slices, each behind the one before': async ({ store: { endpoints } }) => {
    for (const id of ['e5', 'e3', 'e4']) await endpoints.insert(makeEndpoint(id, { createdAtMs: T0 + 1 }))
    const found: string[] = []
    let after: { createdAtMs: number; id: string } | null = null
    for (let round = 0; round < 4; round += 1) {
      const slice: { createdAtMs: number; id: string }[] = await endpoints.list(OWNER, { after, limit: 1 })
      found.push(...slice.map(({ id }) => id))
      after = slice.at(-1)!
    }
    assert.deepEqual(found, [E1, 'e3', 'e4', 'e5'])
    assert.deepEqual(await endpoints.list(OWNER, { after, limit: 9 }), [])
    await endpoints.insert(makeEndpoint('task', { createdAtMs: T0, runsOnce: true }))
    const names = [E1, 'e3', 'e4', 'e5'].map(id => ({ id, name: `endpoint ${id}` }))
    assert.deepEqual(await endpoints.names(OWNER), names)
    const first = { after: { createdAtMs: T0, id: E1 }, limit: 2 }
    assert.deepEqual(await endpoints.names(OWNER, first), names.slice(1, 3))
    assert.deepEqual(await endpoints.names(STRANGER), [])
    assert.equal((await endpoints.list(OWNER)).length, 4)
  },

  'a snapshot has the line, the workers oldest first with what they hold, and the exits newest first': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint(E2))
    await world.worker(W1, { createdAtMs: T0 + 2 })
    await world.worker(W2, { createdAtMs: T0 + 1 })
    await world.worker('other', { endpointId: E2 })
    await world.job('elsewhere', { endpointId: E2 })
    await world.jobs('a', 'b', 'c')
    await world.claim(W1, 3)
    await store.jobOutcomes.cancel(E1, jobId('c'), T0)
    await world.finish('b')
    await world.job('d', { position: T0 + 9, queuedAtMs: T0 + 9 })
    await world.job('e', { position: T0 + 8, queuedAtMs: T0 + 8 })
    await world.job('f', { lowPriority: true, position: T0 + 1, queuedAtMs: T0 + 1 })
    const { endpoint, counters, queue, workers, exits } = await world.snapshot()
    assert.deepEqual(endpoint, await store.endpoints.find(E1))
    assert.deepEqual(counters, { ...ZERO, completed: 1, averageExecutionMs: 500 })
    assert.deepEqual(queue, {
      queued: 2,
      queuedLowPriority: 1,
      queuedInBatches: 0,
      ...NO_SUSPECTS,
      inProgress: 1,
      headQueuedAtMs: T0 + 8,
    })
    const wanted = [
      { ...(await world.readWorker(W2)), held: 0 },
      { ...(await world.readWorker(W1)), held: 2 },
    ]
    assert.deepEqual(workers, wanted)
    assert.deepEqual(exits, [])
  },

  'loads have the line and the workers of each endpoint in numbers, a page at a time': async world => {
    const { store } = world
    await store.endpoints.insert(makeEndpoint('e0'))
    await store.endpoints.insert(makeEndpoint(E2))
    await store.workers.insert(makeWorker('starting'), 'token-starting')
    for (const id of ['idle', 'draining', 'stopping', 'ended']) await world.worker(id)
    await world.worker('other', { endpointId: E2 })
    await store.workers.retire('draining' as WorkerId, 'DRAINING', 'idle', T0)
    await store.workers.retire('stopping' as WorkerId, 'STOPPING', 'idle', T0)
    await store.workers.exited('ended' as WorkerId, EXIT, T0)
    await world.holder('running', 'a')
    await world.holder('letting-go', 'b')
    await store.jobOutcomes.cancel(E1, jobId('b'), T0)
    await world.job('c', { queuedAtMs: T0 + 7 })
    await world.job('d', { lowPriority: true })
    const none = {
      queued: 0,
      queuedLowPriority: 0,
      queuedInBatches: 0,
      inProgress: 0,
      ...NO_SUSPECTS,
      headQueuedAtMs: null,
    }
    const nobody = { starting: 0, idle: 0, running: 0, frozen: 0, draining: 0, stopping: 0 }
    const queue = {
      queued: 1,
      queuedLowPriority: 1,
      queuedInBatches: 0,
      inProgress: 1,
      ...NO_SUSPECTS,
      headQueuedAtMs: T0 + 7,
    }
    const loads = [
      { endpointId: 'e0', queue: none, workers: nobody },
      { endpointId: E1, queue, workers: { ...nobody, starting: 1, idle: 1, running: 2, draining: 1, stopping: 1 } },
      { endpointId: E2, queue: none, workers: { ...nobody, idle: 1 } },
    ]
    assert.deepEqual(await store.endpoints.loads(null, 9), loads)
    assert.deepEqual(await store.endpoints.loads(null, 2), loads.slice(0, 2))
    assert.deepEqual(await store.endpoints.loads(E1, 2), loads.slice(2))
    assert.deepEqual(await store.endpoints.loads(E2, 2), [])
  },

  'a snapshot of nothing, and of nothing to do': async world => {
    assert.equal(await world.store.endpoints.snapshot(E2), null)
    const { queue, workers, exits, counters } = await world.snapshot()
    assert.deepEqual(queue, {
      queued: 0,
      queuedLowPriority: 0,
      queuedInBatches: 0,
      ...NO_SUSPECTS,
      inProgress: 0,
      headQueuedAtMs: null,
    })
    assert.deepEqual([workers, exits, counters], [[], [], ZERO])
  },

  'a snapshot has a bounded number of exits': async world => {
    for (let n = 0; n < 25; n += 1) {
      const id = await world.worker(`w${n}`)
      await world.store.workers.exited(id, EXIT, T0 + n)
    }
    const { exits, workers } = await world.snapshot()
    assert.deepEqual(workers, [])
    assert.deepEqual(
      exits.map(({ id }) => id),
      Array.from({ length: 20 }, (_, n) => `w${24 - n}`),
    )
    assert.deepEqual(exits[0]?.exit, EXIT)
  },

  'removing an endpoint cancels its jobs, takes all of it away and says which workers are left': async world => {
    const { endpoints, stops, jobs, workers } = world.store
    await endpoints.insert(makeEndpoint(E2))
    await world.job('elsewhere', { endpointId: E2 })
    await world.worker(W1)
    const gone = await world.worker('gone')
    await workers.exited(gone, EXIT, T0)
    await world.jobs('done', 'running', 'waiting')
    await world.claim(W1, 2)
    await world.finish('done', W1, DONE)
    const removed = await endpoints.remove(E1, T0 + 700)
    assert.deepEqual(removed?.workers, [await world.readWorker(W1)])
    const moves = (await world.removeAll(E1, T0 + 700)).sort((a, b) => (a.job.id < b.job.id ? -1 : 1))
    assert.deepEqual(
      moves.map(({ job, from }) => [job.id, from, job.status, job.finishedAtMs]),
      [
        ['running', 'IN_PROGRESS', 'CANCELLED', T0 + 700],
        ['waiting', 'IN_QUEUE', 'CANCELLED', T0 + 700],
      ],
    )
    assert.deepEqual(await stops.pending(W1), ['running'])
    for (const id of ['done', 'running', 'waiting']) assert.equal(await jobs.locate(OWNER, jobId(id), T0), null)
    assert.equal(await endpoints.find(E1), null)
    assert.equal(await endpoints.remove(E1, T0), null)
    assert.equal(await jobs.insert(makeJob('late')), false)
    assert.equal(await workers.insert(makeWorker('late'), 'late'), false)
    assert.equal((await workers.list(E1)).length, 2)
    assert.notEqual(await jobs.find(E2, jobId('elsewhere'), T0), null)
  },
}
