import type { Caller } from '../../../core/accounts/permission.ts'
import { dollars } from '../../../core/billing/prices.ts'
import { invalidRequest } from '../../../core/errors.ts'
import type { EndpointId } from '../../../core/ids.ts'
import { listItems } from '../../../core/text-parts.ts'
import type { ApiParts } from '../../parts.ts'
import type { GraphqlContext, Writing } from '../context.ts'
import { endpointView, registryView, secretView, templateView, volumeView } from '../views.ts'
import { appView } from './apps.ts'
import { podsOf } from './tasks.ts'

/** Source value of the account's resolvers. */
export interface User {
  readonly caller: Caller
}

/** The caller's account; null for an anonymous caller. @throws AppError `forbidden` without the right to read */
export function queryMyself({ access }: ApiParts, { caller }: GraphqlContext): (User & ReturnType<typeof user>) | null {
  if (caller === null) return null
  access.requireManagement(caller, 'read')
  return { caller, ...user(caller) }
}

/** An account as GraphQL shows it. Balance and notifications do not exist: clients expect zeros. */
function user({ owner }: Caller) {
  return {
    id: owner,
    email: null,
    clientBalance: 0,
    spendLimit: 0,
    serverlessDiscount: null,
    notifyPodsStale: false,
    notifyPodsGeneral: false,
    notifyLowBalance: false,
  }
}

/** Resources of an account. Lists are complete, up to 10,000 items, because clients do not page. */
export function userFields(parts: ApiParts) {
  const { ports, accounts, billing } = parts
  const { store } = ports
  return {
    pods: ({ caller }: User) => podsOf(parts, caller),
    currentSpendPerHr: async ({ caller }: User) => dollars(await billing.spendPerHour(caller.owner)),
    pubKey: async ({ caller }: User) => (await accounts.sshKeys(caller.owner)).join('\n'),
    endpoints: async ({ caller }: User) => (await store.endpoints.list(caller.owner)).map(endpointView),
    endpoint: async ({ caller }: User, { id }: { id: string }) => {
      const endpoint = await store.endpoints.find(id as EndpointId)
      const isShown = endpoint !== null && endpoint.owner === caller.owner && !endpoint.runsOnce
      return isShown ? endpointView(endpoint) : null
    },
    podTemplates: async ({ caller }: User) => (await store.templates.list(caller.owner)).map(templateView),
    secrets: async ({ caller }: User) => (await store.secrets.list(caller.owner)).map(secretView),
    flashApps: async ({ caller }: User) => (await store.apps.list(caller.owner)).map(appView),
    networkVolumes: async ({ caller }: User) =>
      (await store.volumes.list(caller.owner, undefined, 'network')).map(volumeView),
    globalStoreBuckets: async ({ caller }: User) => {
      const all = await store.volumes.list(caller.owner, undefined, 'global')
      return all.map(({ id, name }) => ({ id, name }))
    },
    containerRegistryCreds: async ({ caller }: User) => (await store.registries.list(caller.owner)).map(registryView),
  }
}

/** Mutations on the account itself. */
export function accountMutations({ accounts }: ApiParts, writing: Writing) {
  return {
    updateUserSettings: writing(async (caller, { input }: { input?: { pubKey?: string | null } | null }) => {
      if (input?.pubKey == null) throw invalidRequest(['pubKey is needed'])
      await accounts.replaceSshKeys(caller.owner, listItems(input.pubKey, '\n'))
      return { caller, ...user(caller) }
    }),
  }
}
