/** Open connections of a key end with the key, or with the right that they need. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Caller, callerFromKey, type KeyScope, mayUseJobs } from '../../../src/core/accounts/permission.ts'
import { AppError } from '../../../src/core/errors.ts'
import type { EndpointId } from '../../../src/core/ids.ts'
import { OpenUses } from '../../../src/services/accounts/open-uses.ts'
import { KEY, openRig, type Rig } from '../../support/rig.ts'
import { servicesOf } from '../../support/services.ts'

const TEXT = 'rpa_of_somebody'
const ENDPOINT = 'e1' as EndpointId

interface World {
  readonly rig: Rig
  readonly uses: OpenUses
  readonly caller: Caller
  /** The refusals of ended uses, in the order in which they ended. */
  readonly ended: string[]
  /** Holds something that needs the right to jobs of the endpoint. */
  hold(name: string, level?: 'read' | 'write'): () => void
}

/** Keys are changed by services of their own, as on another server. */
async function open(t: TestContext, expiresAtMs: number | null = null) {
  const rig = await openRig(t)
  await rig.addKey(TEXT, { expiresAtMs: expiresAtMs === null ? null : rig.clock.now() + expiresAtMs })
  const recordOf = async (key: string) => (await rig.store.keys.findByHash(rig.vault.hash(key)))!
  const caller = callerFromKey(await recordOf(TEXT))
  const uses = new OpenUses(rig.ports, id => rig.store.keys.find(id))
  const ended: string[] = []
  const hold = (name: string, level: 'read' | 'write' = 'write') =>
    uses.hold(
      caller,
      whose => {
        if (!mayUseJobs(whose, level, ENDPOINT)) throw new AppError('forbidden', 'no right')
      },
      ({ code }) => ended.push(`${name} ${code}`),
    )
  const world: World = { rig, uses, caller, ended, hold }
  return { ...world, keys: servicesOf(rig).keys, operator: callerFromKey(await recordOf(KEY)) }
}

test('all that a revoked key holds open ends at once, and nothing of other keys', async t => {
  const { rig, uses, hold, ended, keys, operator, caller } = await open(t)
  uses.hold(
    operator,
    () => {},
    () => ended.push('operator'),
  )
  hold('stream')
  hold('socket')
  await keys.remove(operator, caller.keyId)
  await rig.clock.advance(0)
  assert.deepEqual(ended, ['stream unauthorized', 'socket unauthorized'])
  assert.equal(uses.keys, 1)
})

test('a disabled key ends what it holds', async t => {
  const { rig, hold, ended, keys, operator, caller } = await open(t)
  hold('stream')
  await keys.update(operator, caller.keyId, { disabled: true })
  await rig.clock.advance(0)
  assert.deepEqual(ended, ['stream unauthorized'])
})

test('a narrowed key ends what needs the right that it lost, and keeps the rest', async t => {
  const { rig, hold, ended, keys, operator, caller } = await open(t)
  hold('writing', 'write')
  hold('reading', 'read')
  const scope: KeyScope = { type: 'read-only' }
  await keys.update(operator, caller.keyId, { scope })
  await rig.clock.advance(0)
  assert.deepEqual(ended, ['writing forbidden'])
  await keys.update(operator, caller.keyId, { name: 'another name' })
  await rig.clock.advance(2_000)
  assert.deepEqual(ended, ['writing forbidden'])
})

test('a key that expires ends what it holds within a second, also where its end was moved to the front', async t => {
  const { rig, hold, ended } = await open(t, 60_000)
  hold('stream')
  await rig.clock.advance(59_000)
  assert.deepEqual(ended, [])
  await rig.clock.advance(1_900)
  assert.deepEqual(ended, ['stream unauthorized'])
  const other = await open(t)
  other.hold('stream')
  await other.keys.update(other.operator, other.caller.keyId, { expiresAtMs: other.rig.clock.now() + 5_000 })
  await other.rig.clock.advance(5_900)
  assert.deepEqual(other.ended, ['stream unauthorized'])
})

test('a call that passed the check before its key was revoked ends within a second', async t => {
  const { rig, uses, hold, ended, keys, operator, caller } = await open(t)
  await keys.remove(operator, caller.keyId)
  hold('stream')
  await rig.clock.advance(1_000)
  assert.deepEqual(ended, ['stream unauthorized'])
  assert.equal(uses.keys, 0)
})

test('a released use is not ended, and a short use reads nothing of the store', async t => {
  const { rig, uses, hold, ended, keys, operator, caller } = await open(t)
  const before = rig.calls('keys.find')
  for (let n = 0; n < 100; n += 1) hold('request')()
  assert.equal(rig.calls('keys.find'), before)
  assert.equal(uses.keys, 0)
  await keys.remove(operator, caller.keyId)
  await rig.clock.advance(1_000)
  assert.deepEqual(ended, [])
})

test('while the store is away nothing ends, and it is asked again', async t => {
  const { rig, hold, ended, caller } = await open(t)
  hold('stream')
  await rig.clock.advance(1_000)
  rig.failNext('keys.find', 'before')
  await rig.store.keys.remove(caller.owner, caller.keyId)
  rig.ports.notifier.publish(`key:${caller.keyId}`)
  await rig.clock.advance(1_000)
  assert.deepEqual(ended, [])
  await rig.clock.advance(3_000)
  assert.deepEqual(ended, ['stream unauthorized'])
})

test('a held call of a revoked key is refused, and its job continues', async t => {
  const { rig, keys, operator, caller } = await open(t)
  const endpoint = await rig.endpoint()
  const held = rig.ask('POST', `/v2/${endpoint}/runsync`, { key: TEXT, body: { input: {} } })
  await rig.clock.advance(1_000)
  await keys.remove(operator, caller.keyId)
  await rig.clock.advance(1_000)
  const { status, json } = await held
  assert.equal(status, 401)
  assert.match(json.error, /invalid or has expired/)
  const { json: listed } = await rig.ask('GET', `/v2/${endpoint}/requests`)
  assert.equal(listed.requests[0].status, 'IN_QUEUE')
})

test('a large input whose key is revoked while it arrives makes no job, and nothing of it is kept', async t => {
  const rig = await openRig(t, { inputBytes: 64 * 1_048_576 })
  await rig.addKey(TEXT, {})
  const keyOf = async (key: string) => callerFromKey((await rig.store.keys.findByHash(rig.vault.hash(key)))!)
  const endpoint = await rig.endpoint()
  const body = `{"input":{"a":"${'x'.repeat(30 * 1_048_576)}"}}`
  const headers = { 'content-length': String(body.length) }
  const sent = rig.ask('POST', `/v2/${endpoint}/run`, { key: TEXT, body, headers })
  while (rig.calls('largeTexts.append') < 2) await new Promise(setImmediate)
  await servicesOf(rig).keys.remove(await keyOf(KEY), (await keyOf(TEXT)).keyId)
  await rig.clock.advance(1_000)
  assert.equal((await sent).status, 401)
  assert.equal((await rig.health(endpoint)).jobs.inQueue, 0)
  assert.equal(await rig.store.largeTexts.removeUnused(Number.MAX_SAFE_INTEGER, 1), false, 'parts are left')
})
