import assert from 'node:assert/strict'
import type { Alert } from '../../src/core/alerts/alert.ts'
import { type AlertMessage, testContent } from '../../src/core/alerts/alert-message.ts'
import type { AlertReceiver } from '../../src/core/alerts/alert-receiver.ts'
import type { EndpointId, OwnerId, ReceiverId } from '../../src/core/ids.ts'
import { type Cases, E1, OWNER, STRANGER, T0 } from './store-world.ts'

const receiver = (id: string, owner: OwnerId = OWNER): AlertReceiver => ({
  id: id as ReceiverId,
  owner,
  name: `name ${id}`,
  kind: 'slack',
  shown: 'https://hooks.example',
  createdAtMs: T0,
  sentAtMs: null,
  problem: null,
})
const alert = (endpointId: EndpointId, changes: Partial<Alert> = {}): Alert => ({
  owner: OWNER,
  endpointId,
  name: 'chat',
  cause: 'crash_loop',
  text: 'workers crash',
  firstSeenAtMs: T0,
  lastSeenAtMs: T0 + 1,
  raisedAtMs: null,
  ...changes,
})
const message = (id: string, receiverId: string, dueAtMs = T0): AlertMessage => ({
  id,
  owner: OWNER,
  receiverId: receiverId as ReceiverId,
  content: testContent(T0, null),
  attempts: 0,
  dueAtMs,
})

/** Alerts, their receivers and messages. */
export const alertCases: Cases = {
  'receivers are of their owner, and go with their messages and, the last one, with the alerts': async ({
    store: { alerts },
  }) => {
    await alerts.insertReceiver(receiver('r1'), 'sealed 1')
    await alerts.insertReceiver(receiver('r2'), 'sealed 2')
    await alerts.insertReceiver(receiver('s1', STRANGER), 'sealed 3')
    assert.deepEqual(await alerts.receivers(OWNER), [receiver('r1'), receiver('r2')])
    assert.deepEqual(await alerts.findReceiver(OWNER, 'r1' as ReceiverId), receiver('r1'))
    assert.equal(await alerts.findReceiver(STRANGER, 'r1' as ReceiverId), null)
    assert.deepEqual(await alerts.owners('', 10), [OWNER, STRANGER].sort())
    assert.deepEqual(await alerts.owners([OWNER, STRANGER].sort()[0]!, 10), [[OWNER, STRANGER].sort()[1]])
    await alerts.save(OWNER, [alert(E1)], [message('m1', 'r1'), message('m2', 'r2')])
    assert.equal(await alerts.removeReceiver(STRANGER, 'r1' as ReceiverId), false)
    assert.equal(await alerts.removeReceiver(OWNER, 'r1' as ReceiverId), true)
    assert.deepEqual(
      (await alerts.due(T0, 10)).map(({ message: { id }, sealed }) => [id, sealed]),
      [['m2', 'sealed 2']],
    )
    assert.deepEqual(await alerts.open(OWNER), [alert(E1)])
    await alerts.removeReceiver(OWNER, 'r2' as ReceiverId)
    assert.deepEqual(await alerts.open(OWNER), [])
  },

  'alerts are replaced by the next ones, and messages without a receiver are left out': async ({
    store: { alerts },
  }) => {
    await alerts.insertReceiver(receiver('r1'), 'sealed')
    await alerts.save(OWNER, [alert(E1)], [])
    const raised = alert(E1, { raisedAtMs: T0 + 9 })
    await alerts.save(OWNER, [raised], [message('m1', 'gone')])
    assert.deepEqual(await alerts.open(OWNER), [raised])
    assert.equal(await alerts.nextDue(), null)
  },

  'of each receiver the first message is due, until it is settled or put off': async ({ store: { alerts } }) => {
    await alerts.insertReceiver(receiver('r1'), 'sealed')
    await alerts.addMessages([message('m1', 'r1', T0 + 2), message('m2', 'r1', T0 + 5)])
    assert.deepEqual(await alerts.due(T0 + 1, 10), [])
    assert.equal(await alerts.nextDue(), T0 + 2)
    assert.equal(await alerts.waiting('r1' as ReceiverId), 2)
    const [first] = await alerts.due(T0 + 9, 10)
    assert.deepEqual(first!.message, message('m1', 'r1', T0 + 2))
    await alerts.putOff(first!.message, T0 + 20, 'no answer')
    const [second] = await alerts.due(T0 + 9, 10)
    assert.deepEqual([second!.message.id, second!.receiver.problem], ['m2', 'no answer'])
    await alerts.settle(second!.message, T0 + 10, null)
    const [again] = await alerts.due(T0 + 20, 10)
    assert.deepEqual([again!.message.id, again!.message.attempts], ['m1', 1])
    assert.deepEqual([again!.receiver.sentAtMs, again!.receiver.problem], [T0 + 10, null])
    await alerts.settle(again!.message, T0 + 21, 'gave up')
    assert.equal(await alerts.nextDue(), null)
    const [kept] = await alerts.receivers(OWNER)
    assert.deepEqual([kept!.sentAtMs, kept!.problem], [T0 + 10, 'gave up'])
  },
}
