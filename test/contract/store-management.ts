import assert from 'node:assert/strict'
import { MAX_KEPT_CHARACTERS, MAX_RELEASES } from '../../src/core/endpoints/release.ts'
import type { RegistryId, TemplateId, VolumeId, WorkerId } from '../../src/core/ids.ts'
import type { WorkerExit } from '../../src/core/workers/worker-exit.ts'
import { type ReleaseOptions, SEAL_KINDS } from '../../src/ports/store/management-store.ts'
import {
  type Cases,
  E1,
  E2,
  makeEndpoint,
  makeKey,
  makeRegistry,
  makeSecret,
  makeTemplate,
  makeVolume,
  makeWorker,
  OWNER,
  replaceTemplate,
  STRANGER,
  T0,
  TPL,
} from './store-world.ts'

const R1 = 'r1' as RegistryId
const V1 = 'v1' as VolumeId
const ids = (things: readonly { id: string }[]) => things.map(({ id }) => id)

/** Registries, network volumes and releases. */
export const managementCases: Cases = {
  'registries are kept without their passwords, which are given apart': async ({ store: { registries } }) => {
    await registries.insert(makeRegistry('r2', { createdAtMs: T0 + 1 }), 'sealed 2')
    await registries.insert(makeRegistry(R1), 'sealed 1')
    await registries.insert(makeRegistry('r3', { owner: STRANGER }), 'sealed 3')
    assert.deepEqual(await registries.find(OWNER, R1), makeRegistry(R1))
    assert.deepEqual(ids(await registries.list(OWNER)), [R1, 'r2'])
    assert.deepEqual(ids(await registries.list(OWNER, { after: makeRegistry(R1), limit: 5 })), ['r2'])
    assert.equal(await registries.sealedPassword(OWNER, R1), 'sealed 1')
    for (const nothing of [registries.find(STRANGER, R1), registries.sealedPassword(STRANGER, R1)]) {
      assert.equal(await nothing, null)
    }
  },

  'a change of a registry keeps the password unless there is a new one': async ({ store: { registries } }) => {
    await registries.insert(makeRegistry(R1), 'old')
    const renamed = makeRegistry(R1, { name: 'new', username: 'you' })
    await registries.update(OWNER, R1, { name: 'new' })
    assert.deepEqual(await registries.update(OWNER, R1, { username: 'you' }), renamed)
    assert.deepEqual(await registries.find(OWNER, R1), renamed)
    assert.equal(await registries.sealedPassword(OWNER, R1), 'old')
    assert.deepEqual(await registries.update(OWNER, R1, { sealed: 'new' }), renamed)
    assert.equal(await registries.sealedPassword(OWNER, R1), 'new')
    assert.equal(await registries.update(STRANGER, R1, {}), null)
  },

  'a registry that goes is taken out of its templates, and their endpoints get a new version': async ({ store }) => {
    const { registries, templates, endpoints, releases } = store
    await registries.insert(makeRegistry(R1), 'sealed')
    assert.deepEqual(await replaceTemplate(templates, makeTemplate(TPL, { registry: R1 }), T0), [E1])
    await templates.insert(makeTemplate('t2', { registry: R1 }))
    await endpoints.insert(makeEndpoint(E2, { templateId: 't2' as TemplateId }))
    assert.equal(await registries.remove(STRANGER, R1, T0), null)
    assert.deepEqual(await registries.remove(OWNER, R1, T0 + 5), [E1, E2])
    for (const id of [TPL, 't2' as TemplateId]) assert.equal((await templates.find(OWNER, id))?.registry, null)
    const versions = [E1, E2].map(async id => (await endpoints.find(id))?.version)
    assert.deepEqual(await Promise.all(versions), [3, 2])
    const [latest] = await releases.list(E2)
    assert.deepEqual(latest?.diff, [{ field: 'registry', old: R1, new: null }])
    assert.equal(latest?.createdAtMs, T0 + 5)
    assert.equal(await registries.remove(OWNER, R1, T0), null)
  },

  'a template cannot have a registry that is not there': async ({ store: { templates } }) => {
    await assert.rejects(templates.insert(makeTemplate('t2', { registry: R1 })))
    assert.equal(await templates.find(OWNER, 't2' as TemplateId), null)
  },

  'volumes are kept as they were given, renamed, and only grow': async ({ store: { volumes } }) => {
    const fast = makeVolume('v2', { type: 'HIGH_PERFORMANCE', createdAtMs: T0 + 1 })
    await volumes.insert(makeVolume(V1))
    await volumes.insert(fast)
    await volumes.insert(makeVolume('v3', { owner: STRANGER }))
    assert.deepEqual(await volumes.list(OWNER), [makeVolume(V1), fast])
    assert.deepEqual(ids(await volumes.list(OWNER, { after: null, limit: 1 })), [V1])
    assert.equal(await volumes.find(STRANGER, V1), null)
    const grown = makeVolume(V1, { name: 'new', sizeGb: 21 })
    await volumes.update(OWNER, V1, { name: 'new' })
    assert.deepEqual(await volumes.update(OWNER, V1, { sizeGb: 21 }), grown)
    assert.deepEqual(await volumes.find(OWNER, V1), grown)
    assert.equal(await volumes.update(OWNER, V1, { sizeGb: 20, name: 'other' }), null)
    assert.equal(await volumes.update(STRANGER, V1, {}), null)
    assert.deepEqual(await volumes.update(OWNER, V1, {}), grown)
  },

  'volumes are listed by their kind': async ({ store: { volumes } }) => {
    const everywhere = makeVolume('v2', { dataCenter: null, createdAtMs: T0 + 1 })
    await volumes.insert(makeVolume(V1))
    await volumes.insert(everywhere)
    assert.deepEqual(await volumes.list(OWNER), [makeVolume(V1), everywhere])
    assert.deepEqual(await volumes.list(OWNER, undefined, 'network'), [makeVolume(V1)])
    assert.deepEqual(await volumes.list(OWNER, { after: null, limit: 1 }, 'global'), [everywhere])
  },

  'a volume cannot be removed while endpoints use it': async ({ store: { volumes, endpoints } }) => {
    await volumes.insert(makeVolume(V1))
    assert.equal(await volumes.remove(STRANGER, V1), 'absent')
    await endpoints.insert(makeEndpoint(E2, { networkVolumeIds: [V1, 'gone' as VolumeId] }))
    const before = (await endpoints.find(E1))!
    const using = { ...before, networkVolumeIds: [V1] }
    assert.equal(await endpoints.replace(using, before, T0), true)
    assert.deepEqual(await volumes.remove(OWNER, V1), [E1, E2])
    assert.equal(await endpoints.replace(before, using, T0), true)
    assert.deepEqual(await volumes.remove(OWNER, V1), [E2])
    await endpoints.remove(E2, T0)
    assert.equal(await volumes.remove(OWNER, V1), 'removed')
    assert.equal(await volumes.remove(OWNER, V1), 'absent')
  },

  'each version of an endpoint has a release, newest first, that says what changed': async ({ store }) => {
    const { endpoints, templates, releases } = store
    const before = (await endpoints.find(E1))!
    const changed = { ...before, version: 2, flashboot: 'FLASHBOOT', env: { A: '2' }, workersMax: 4 } as const
    await endpoints.replace(changed, before, T0 + 1)
    await replaceTemplate(templates, makeTemplate(TPL, { image: 'image:2', name: 'renamed' }), T0 + 2)
    const same = { ...changed, version: 3, workersMin: 1 }
    assert.equal(await endpoints.replace({ ...same, workersMin: 1 }, { ...changed, version: 3 }, T0 + 3), true)
    const [third, second, first, ...more] = await releases.list(E1)
    assert.deepEqual(more, [])
    const [endpointId, owner, source, createdBy] = [E1, OWNER, 'MANUAL', OWNER] as const
    const common = { endpointId, owner, source, createdBy, restores: null, image: null, canary: null, hasWorked: false }
    assert.deepEqual(first, { ...common, id: 'e1-1', version: 1, createdAtMs: T0, diff: [] })
    assert.deepEqual(second, {
      ...common,
      id: 'e1-2',
      version: 2,
      createdAtMs: T0 + 1,
      diff: [
        { field: 'flashboot', old: 'OFF', new: 'FLASHBOOT' },
        { field: 'env.A', old: '1', new: '2' },
      ],
    })
    assert.deepEqual(third, {
      ...common,
      id: 'e1-3',
      version: 3,
      createdAtMs: T0 + 2,
      diff: [{ field: 'image', old: 'dir:worker', new: 'image:2' }],
    })
    const { configuration, ...listed } = (await releases.find(E1, 2))!
    assert.deepEqual({ ...listed, hasWorked: false }, second)
    assert.deepEqual(
      [configuration?.endpoint.flashboot, configuration?.endpoint.env, configuration?.template.image],
      ['FLASHBOOT', { A: '2' }, 'dir:worker'],
    )
    assert.equal(await releases.find(E1, 4), null)
    await endpoints.remove(E1, T0)
    assert.deepEqual(await releases.list(E1), [])
    assert.equal(await releases.find(E1, 2), null)
  },

  'the release of a rollback has the exact image of the one that it goes back to': async ({ store }) => {
    const { endpoints, releases } = store
    const before = (await endpoints.find(E1))!
    const after = { ...before, version: 2 }
    assert.equal(await endpoints.replace(after, before, T0, undefined, { restores: 1, image: 'a@1' }), true)
    const [second] = await releases.list(E1)
    assert.deepEqual([second?.restores, second?.image], [1, 'a@1'])
    assert.equal(await releases.image(E1, 2), 'a@1')
  },

  'a release was not ready where that was known only from a worker that did not start': async world => {
    const { releases, workers } = world.store
    const [a, b, c] = ['a', 'b', 'c'] as [WorkerId, WorkerId, WorkerId]
    const facts = async () => {
      const { wasReady, crashes } = await releases.rollout(E1, 1)
      return [wasReady, crashes]
    }
    const ends = async (id: WorkerId) => {
      await workers.retire(id, 'STOPPING', 'failed_start', T0)
      return workers.exited(id, { code: 1, signal: null, cause: { kind: 'ended' }, lastLines: [] }, T0)
    }
    await world.worker(a)
    await world.worker(b)
    assert.equal((await ends(a))?.worker.readyAtMs, null)
    assert.deepEqual(await facts(), [true, 0], 'another worker is ready')
    assert.equal((await ends(b))?.worker.readyAtMs, null)
    assert.deepEqual(await facts(), [false, 1])
    await world.worker(c)
    await world.jobs('done')
    await world.store.jobs.claim({ endpointId: E1, workerId: c, limit: 1, nowMs: T0 })
    await world.finish('done', c)
    assert.equal((await ends(c))?.worker.readyAtMs, T0, 'one that has finished a job has started')
    assert.deepEqual(await facts(), [true, 0])
  },

  'a release knows whether a worker of it was ready, how many crashed before, and which one worked last':
    async world => {
      const { endpoints, releases, workers } = world.store
      const change = async (version: number) => {
        const before = (await endpoints.find(E1))!
        await endpoints.replace({ ...before, version, env: { V: `${version}` } }, before, T0)
      }
      const crash = async (name: string, version: number, how: Partial<WorkerExit> = {}) => {
        const id = name as WorkerId
        await workers.insert(makeWorker(name, { version }), `token-${name}`)
        await workers.exited(id, { code: 1, signal: null, cause: { kind: 'ended' }, lastLines: [], ...how }, T0)
      }
      assert.deepEqual(await releases.rollout(E1, 1), {
        wasReady: false,
        crashes: 0,
        working: null,
        canary: null,
        stop: null,
      })
      await world.worker('a' as WorkerId)
      await workers.seen('a' as WorkerId, 1, null, T0)
      assert.deepEqual(await releases.rollout(E1, 1), {
        wasReady: true,
        crashes: 0,
        working: null,
        canary: null,
        stop: null,
      })
      await crash('b', 1)
      await change(2)
      await crash('c', 2)
      await crash('d', 2, { cause: { kind: 'unseen', when: 'server_away' } })
      const worked = (await releases.list(E1)).map(({ version, hasWorked }) => [version, hasWorked])
      assert.deepEqual(worked, [
        [2, false],
        [1, true],
      ])
      const { working, ...facts } = (await endpoints.snapshot(E1))!.rollout
      assert.deepEqual([facts, working?.version], [{ wasReady: false, crashes: 1, canary: null, stop: null }, 1])
      assert.deepEqual(working?.configuration.endpoint.env, { A: '1' })
      for (let version = 3; version < MAX_RELEASES + 5; version += 1) await change(version)
      assert.equal((await endpoints.snapshot(E1))!.rollout.working?.version, 1, 'it is kept however old it is')
      const before = (await endpoints.find(E1))!
      await endpoints.replace({ ...before, version: before.version + 1 }, before, T0, undefined, {
        replacesAtOnce: true,
      })
      const { wasReady, replacesAtOnce } = (await endpoints.snapshot(E1))!.rollout
      assert.deepEqual([wasReady, replacesAtOnce], [true, true])
    },

  'the results of workers are counted with their releases, and the newest one is judged against the last good one':
    async world => {
      const { endpoints, releases, workers } = world.store
      const change = async (version: number, options: ReleaseOptions = {}) => {
        const before = (await endpoints.find(E1))!
        await endpoints.replace({ ...before, version, env: { V: `${version}` } }, before, T0, undefined, options)
      }
      const ready = async (name: string, version: number) => {
        await workers.insert(makeWorker(name as WorkerId, { version }), `token-${name}`)
        await workers.seen(name as WorkerId, 1, null, T0 + 1)
      }
      const count = async (name: string, failed: number, ended: number, lostJobs = false) => {
        const [judged] = await releases.addResults([
          { workerId: name as WorkerId, ended, failed, lostJobs },
          { workerId: 'nobody' as WorkerId, ended: 9, failed: 9, lostJobs: true },
        ])
        if (judged === undefined) return null
        const { version, results, good } = judged
        return [
          version,
          `${results.failed}/${results.ended}`,
          good?.version ?? null,
          good && `${good.results.failed}/${good.results.ended}`,
        ]
      }
      await ready('a', 1)
      assert.equal(await count('a', 1, 200), null, 'the first release has none to be compared with')
      assert.equal(await count('a', 2, 200), null)
      assert.equal(await count('a', 1, 100), null)
      await change(2)
      assert.equal(await count('a', 0, 0), null, 'none of its workers was ready')
      await ready('b', 2)
      // Of more than 400 the last weigh: 4 of 500 as 2 of 200.
      assert.deepEqual(await count('b', 3, 5), [2, '3/5', 1, '2/200'])
      await change(3)
      await ready('c', 3)
      await workers.exited('c' as WorkerId, { code: 9, signal: null, cause: { kind: 'ended' }, lastLines: [] }, T0)
      assert.deepEqual(await count('c', 0, 0, true), [3, '1/1', 1, '2/200'], 'the second one has too few results')
      await ready('b2', 2)
      assert.deepEqual(await count('b2', 0, 15), [3, '1/1', 2, '3/20'])
      const stop = { atMs: T0, release: { ended: 20, failed: 18 }, working: { ended: 200, failed: 2 } }
      assert.equal(await releases.stop(E1, 2, 1, stop), false, 'it is not the newest')
      assert.equal(await releases.stop(E1, 3, 1, stop), true)
      assert.equal(await releases.stop(E1, 3, 1, stop), false)
      assert.equal(await count('c', 1, 1), null)
      const { rollout } = (await endpoints.snapshot(E1))!
      assert.deepEqual([rollout.stop, rollout.working?.version, rollout.wasReady], [stop, 1, true])
      assert.deepEqual(await releases.rollout(E1, 3), rollout)
      const [listed] = await endpoints.listed(OWNER, { limit: 1, after: null })
      assert.deepEqual(listed?.snapshot.rollout, rollout)
      await change(4)
      assert.equal((await releases.rollout(E1, 4)).working?.version, 2, 'a stopped one has not worked')
      await ready('d', 4)
      await releases.endTrial(E1, 4)
      assert.equal(await count('d', 1, 1), null)
      await change(5, { restores: 1 })
      await ready('e', 5)
      assert.equal(await count('e', 1, 1), null, 'a rollback is not judged')
      await change(6)
      await ready('f', 6)
      assert.deepEqual(await count('f', 0, 1), [6, '0/1', 5, '3/201'], 'it goes on from what it restores')
      await change(7, { canary: 10 })
      await ready('g', 7)
      assert.deepEqual(await count('g', 1, 1), [7, '1/1', 6, '0/1'], 'a canary is compared with its base')
      assert.equal(await releases.stop(E1, 7, 6, stop), true)
      assert.equal((await releases.rollout(E1, 7)).working?.version, 6)
      assert.equal(await releases.promote(E1, 7), true)
      assert.deepEqual(await releases.rollout(E1, 7), {
        wasReady: true,
        crashes: 0,
        working: null,
        canary: null,
        stop: null,
      })
      assert.equal(await count('g', 9, 9), null, 'somebody has looked at it')
      await change(8, { replacesAtOnce: true })
      await ready('h', 8)
      assert.equal(await count('h', 9, 9), null)
    },

  'a canary is known with its base, is the base of no other one, and is promoted once, while it is the newest':
    async world => {
      const { endpoints, releases, workers } = world.store
      const change = async (version: number, canary: number | null) => {
        const before = (await endpoints.find(E1))!
        const after = { ...before, version, env: { V: `${version}` } }
        await endpoints.replace(after, before, T0, undefined, { canary })
      }
      const ready = async (name: string, version: number) => {
        await workers.insert(makeWorker(name as WorkerId, { version }), `token-${name}`)
        await workers.seen(name as WorkerId, 1, null, T0)
      }
      const rollout = async () => {
        const { working, stop: _, ...facts } = (await endpoints.snapshot(E1))!.rollout
        return { ...facts, base: working?.version }
      }
      await ready('a', 1)
      assert.equal(await releases.promote(E1, 1), false)
      await change(2, 10)
      assert.deepEqual(await rollout(), { wasReady: false, crashes: 0, canary: 10, base: 1 })
      await ready('b', 2)
      assert.deepEqual(await rollout(), { wasReady: true, crashes: 0, canary: 10, base: 1 })
      await change(3, 50)
      assert.deepEqual(await rollout(), { wasReady: false, crashes: 0, canary: 50, base: 1 })
      assert.equal(await releases.promote(E1, 2), false, 'it is not the newest')
      await ready('c', 3)
      assert.equal(await releases.promote(E1, 3), true)
      assert.deepEqual(await rollout(), { wasReady: true, crashes: 0, canary: null, base: undefined })
      assert.equal(await releases.promote(E1, 3), false)
      assert.deepEqual(
        (await releases.list(E1)).map(({ version, canary }) => [version, canary]),
        [
          [3, null],
          [2, 10],
          [1, null],
        ],
      )
    },

  'configurations of releases are kept up to a limit, and those of the last two in any case': async ({ store }) => {
    const { endpoints, releases } = store
    const kept = async () =>
      (await Promise.all((await releases.list(E1)).map(({ version }) => releases.find(E1, version)))).map(
        release => release?.configuration !== null,
      )
    const grow = async (version: number, characters: number) => {
      const before = (await endpoints.find(E1))!
      await endpoints.replace({ ...before, version, env: { BIG: 'x'.repeat(characters) } }, before, T0)
    }
    await grow(2, MAX_KEPT_CHARACTERS / 2)
    await grow(3, MAX_KEPT_CHARACTERS / 4)
    assert.deepEqual(await kept(), [true, true, true])
    await grow(4, MAX_KEPT_CHARACTERS / 4)
    assert.deepEqual(await kept(), [true, true, false, false])
    await grow(5, MAX_KEPT_CHARACTERS)
    await grow(6, MAX_KEPT_CHARACTERS)
    assert.deepEqual(await kept(), [true, true, false, false, false, false])
  },

  'the image of a release is set once, and changed only by a caller with its present value': async ({ store }) => {
    const { endpoints, templates, releases } = store
    const pin = (version: number, image: string, replaced: string | null = null) =>
      releases.pinImage(E1, version, { image, replaced })
    assert.equal(await releases.image(E1, 1), null)
    const [settled, same] = await Promise.all([pin(1, 'a@1'), pin(1, 'b@2')])
    assert.ok(settled === same && (settled === 'a@1' || settled === 'b@2'), `${settled} ${same}`)
    assert.equal(await pin(1, 'c@3', settled === 'a@1' ? 'b@2' : 'a@1'), settled)
    assert.equal(await pin(1, 'c@3', settled), 'c@3')
    assert.equal(await releases.image(E1, 1), 'c@3')
    assert.equal(await pin(9, 'd@4'), null)
    for (const version of [2, 3]) {
      await replaceTemplate(templates, makeTemplate(TPL, { image: `image:${version}` }), T0)
      assert.equal(await releases.image(E1, version), null)
    }
    const images = async () => [...(await releases.images(null, 10)).images].sort()
    assert.deepEqual(await releases.images(null, 10), { images: [], next: null })
    await pin(2, 'e@5')
    await pin(3, 'f@6')
    assert.deepEqual(await images(), ['e@5', 'f@6'])
    await endpoints.insert(makeEndpoint(E2))
    await releases.pinImage(E2, 1, { image: 'f@6', replaced: null })
    assert.deepEqual(await images(), ['e@5', 'f@6'])
    const first = await releases.images(null, 1)
    assert.deepEqual([[...first.images].sort(), first.next], [['e@5', 'f@6'], E1])
    assert.deepEqual(await releases.images(E1, 1), { images: ['f@6'], next: E2 })
    assert.deepEqual(await releases.images(E2, 1), { images: [], next: null })
  },

  'which commit a model of a release means is settled once': async ({ store }) => {
    const { releases, templates } = store
    const pin = (version: number, reference: string, commit: string) =>
      releases.pinModel(E1, version, { reference, commit })
    assert.deepEqual(await releases.models(E1, 1), {})
    const [settled, same] = await Promise.all([pin(1, 'a/b', 'one'), pin(1, 'a/b', 'two')])
    assert.ok(settled === same && (settled === 'one' || settled === 'two'), `${settled} ${same}`)
    assert.equal(await pin(1, 'a/c:v1', 'three'), 'three')
    assert.deepEqual(await releases.models(E1, 1), { 'a/b': settled, 'a/c:v1': 'three' })
    assert.equal(await pin(9, 'a/b', 'one'), null)
    await replaceTemplate(templates, makeTemplate(TPL, { image: 'image:2' }), T0)
    assert.deepEqual(await releases.models(E1, 2), {})
  },

  'a release that cannot be suspended is remembered, and a new one begins without that': async ({ store }) => {
    const { releases, templates } = store
    const failures = { reason: 'managed memory', count: 2 }
    assert.equal(await releases.suspendFailures(E1, 1), null)
    await releases.setSuspendFailures(E1, 1, failures)
    assert.deepEqual(await releases.suspendFailures(E1, 1), failures)
    await replaceTemplate(templates, makeTemplate(TPL, { image: 'image:2' }), T0)
    assert.equal(await releases.suspendFailures(E1, 2), null)
    await releases.setSuspendFailures(E1, 1, null)
    assert.equal(await releases.suspendFailures(E1, 1), null)
  },

  'the GPU memory of a release is kept, and a new one begins without that': async ({ store }) => {
    const { releases, templates } = store
    const learned = { peakMb: 6_000, hasWorked: true, failedMb: 0 }
    assert.equal(await releases.gpuMemory(E1, 1), null)
    await releases.setGpuMemory(E1, 1, learned)
    assert.deepEqual(await releases.gpuMemory(E1, 1), learned)
    await replaceTemplate(templates, makeTemplate(TPL, { image: 'image:2' }), T0)
    assert.equal(await releases.gpuMemory(E1, 2), null)
    assert.equal(await releases.gpuMemory(E1, 9), null, 'there is no such release')
  },

  'the newest releases are kept': async ({ store: { templates, releases } }) => {
    for (let n = 0; n < MAX_RELEASES + 2; n += 1)
      await replaceTemplate(templates, makeTemplate(TPL, { image: `image:${n}` }), T0)
    const kept = await releases.list(E1)
    assert.deepEqual([kept.length, kept[0]?.version, kept.at(-1)?.version], [MAX_RELEASES, MAX_RELEASES + 3, 4])
  },

  'all that is sealed is listed, and replaced where it is still the same': async world => {
    const { seals, secrets, registries, webhooks, keys } = world.store
    for (const id of ['1', '2', '3'])
      await secrets.insert(makeSecret(id, id === '2' ? { owner: STRANGER } : {}), `s${id}`)
    await registries.insert(makeRegistry(R1), 'r')
    await webhooks.ensureKey(E1, OWNER, { sealed: 'w', createdAtMs: T0 })
    await keys.insert(makeKey('1'))
    await keys.ensureForEndpoint(makeKey('2', { kind: 'endpoint', endpointId: E1 }), 'k')
    await world.job('plain')
    await world.job('stored', { s3Config: 'j', input: 'sealed:i', webhook: 'sealed:u' })
    const before = (await world.store.endpoints.find(E1))!
    await world.store.endpoints.replace({ ...before, version: 2, env: { A: 'sealed:e' } }, before, T0)
    await world.store.endpoints.replace(before, { ...before, version: 2, env: { A: 'sealed:e' } }, T0)
    const { env, ...rest } = makeTemplate('sealed-env', { name: 'sealed-env', env: { A: 'sealed:e' } })
    await world.store.templates.insert({ ...rest, env })
    const all: Record<string, string[]> = {}
    for (const kind of SEAL_KINDS)
      all[kind] = (await seals.list(kind, '', 9)).map(({ id, sealed }) => `${id} ${sealed}`)
    assert.deepEqual(all, {
      keyCanaries: [],
      secrets: ['1 s1', '2 s2', '3 s3'],
      webhookKeys: [`${E1} w`],
      registries: [`${R1} r`],
      alertReceivers: [],
      endpointKeys: ['2 k'],
      jobs: ['stored j'],
      jobInputs: ['stored sealed:i'],
      recordInputs: [],
      largeTextParts: [],
      jobWebhooks: ['stored sealed:u'],
      draftInputs: [],
      draftWebhooks: [],
      batchWebhooks: [],
      deliveries: [],
      templates: all.templates,
      endpoints: [],
      releases: all.releases,
    })
    assert.match(all.templates!.join(), /^sealed-env \{.*"env":\{"A":"sealed:e"\}/)
    assert.equal(all.releases!.length, 1)
    assert.match(all.releases!.join(), /^e1-2 \{.*"env":\{"A":"sealed:e"\}/)
    assert.ok((await seals.listPayloads('templates', '', 9)).length > 1, 'plain ones too')
    assert.equal((await seals.listPayloads('jobInputs', '', 9)).length, 2)
    assert.equal((await seals.listPayloads('jobWebhooks', '', 9)).length, 1)
    assert.deepEqual(ids(await seals.list('secrets', '1', 1)), ['2'])
    const changes = [
      { id: '1', previous: 's1', next: 'new' },
      { id: '2', previous: 'else', next: 'new' },
    ]
    assert.equal(await seals.replace('secrets', changes), 1)
    assert.deepEqual(
      (await seals.list('secrets', '', 9)).map(({ sealed }) => sealed),
      ['new', 's2', 's3'],
    )
    assert.equal(await seals.replace('jobs', [{ id: 'stored', previous: 'j', next: 'new' }]), 1)
    assert.equal((await world.read('stored')).s3Config, 'new')
  },

  'a variable of an endpoint is sealed again where it still has the same text': async ({ store }) => {
    const before = (await store.endpoints.find(E1))!
    await store.endpoints.replace({ ...before, env: { A: 'sealed:old' } }, before, T0)
    const [text] = await store.seals.list('endpoints', '', 9)
    const change = { id: E1, previous: text!.sealed, next: text!.sealed.replace('sealed:old', 'sealed:new') }
    assert.deepEqual([text!.id, text!.row], [E1, OWNER])
    assert.equal(await store.seals.replace('endpoints', [change]), 1)
    assert.equal(await store.seals.replace('endpoints', [change]), 0)
    assert.deepEqual((await store.endpoints.find(E1))?.env, { A: 'sealed:new' })
  },

  'the first canary of the encryption key is kept': async ({ store: { seals } }) => {
    assert.deepEqual([await seals.keepCanary('first'), await seals.keepCanary('second')], ['first', 'first'])
  },

  'free space is given back in steps until little is left': async ({ store: { upkeep } }) => {
    for (let step = 0; await upkeep.compact(); step += 1) assert.ok(step < 1_000, 'it never ends')
    assert.equal(await upkeep.compact(), false)
  },
}
