/** Effects of a second account: workers that must be kept apart, and webhooks that stay off private addresses. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Account } from '../../../src/core/accounts/account.ts'
import type { Caller } from '../../../src/core/accounts/permission.ts'
import { NO_LIMITS } from '../../../src/core/accounts/quotas.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../../src/core/ids.ts'
import type { Ports } from '../../../src/ports/ports.ts'
import { Accounts } from '../../../src/services/accounts/accounts.ts'
import { Quotas } from '../../../src/services/accounts/quotas.ts'
import { SHARING_RULES, SharingGuard, type SharingRules } from '../../../src/services/accounts/sharing-guard.ts'

const OPERATOR = { owner: DEFAULT_OWNER, keyId: 'k', operator: true } as unknown as Caller

function installation(reason: string | null, rules: Partial<SharingRules> = {}) {
  const kept: Account[] = [
    { id: DEFAULT_OWNER, name: 'operator', createdAtMs: 0, deleteRunningEndpoints: false, limits: {} },
  ]
  const ports = {
    store: { accounts: { list: async () => [...kept], insert: async (account: Account) => void kept.push(account) } },
    driver: { keepsApart: () => reason },
    random: { bytes: (count: number) => new Uint8Array(count), uuid: () => 'u' as OwnerId },
    clock: { now: () => 0 },
    emit: () => {},
  } as unknown as Ports
  const sharing = new SharingGuard(ports, { ...SHARING_RULES, ...rules })
  return { sharing, accounts: new Accounts(ports, sharing, new Quotas(ports, NO_LIMITS)), kept }
}

test('a second account is refused with the reason while workers are not kept apart', async () => {
  const { accounts, kept } = installation('processes run without a cage')
  await assert.rejects(accounts.create(OPERATOR, 'Ada'), {
    code: 'conflict',
    message: /processes run without a cage; start the server with --accept-shared-host/,
  })
  assert.equal(kept.length, 1)
})

test('a second account is made where workers are kept apart, or the operator accepts that they are not', async () => {
  for (const { accounts } of [installation(null), installation('no cage', { acceptSharedHost: true })]) {
    assert.equal((await accounts.create(OPERATOR, 'Ada')).name, 'Ada')
  }
})

test('webhooks of the operator may go to private addresses, those of others where he says so, and never to this machine', () => {
  const stranger = 'user_stranger' as OwnerId
  const rules = (webhookPrivate: SharingRules['webhookPrivate']) => {
    const { sharing } = installation(null, { webhookPrivate })
    return [sharing.webhookRules(DEFAULT_OWNER), sharing.webhookRules(stranger)]
  }
  assert.deepEqual(rules('auto'), [
    { publicOnly: false, notThisMachine: false },
    { publicOnly: true, notThisMachine: true },
  ])
  assert.deepEqual(rules('on'), [
    { publicOnly: false, notThisMachine: false },
    { publicOnly: false, notThisMachine: true },
  ])
  assert.deepEqual(rules('off'), [
    { publicOnly: true, notThisMachine: false },
    { publicOnly: true, notThisMachine: true },
  ])
})

test('several accounts are a problem only where workers are not isolated and that was not accepted', async () => {
  const another: Account = {
    id: 'user2' as OwnerId,
    name: 'Ada',
    createdAtMs: 0,
    deleteRunningEndpoints: false,
    limits: {},
  }
  const problemOf = (reason: string | null, rules: Partial<SharingRules>, ...accounts: Account[]) => {
    const { sharing, kept } = installation(reason, rules)
    kept.push(...accounts)
    return sharing.problem()
  }
  assert.equal(await problemOf('no cage', {}, another), 'no cage')
  assert.equal(await problemOf('no cage', {}), null)
  assert.equal(await problemOf(null, {}, another), null)
  assert.equal(await problemOf('no cage', { acceptSharedHost: true }, another), null)
})
