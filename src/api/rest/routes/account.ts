import type { Account } from '../../../core/accounts/account.ts'
import type { LoginRequest } from '../../../core/accounts/login-request.ts'
import {
  type Caller,
  type FilesAccess,
  hasFiles,
  type JobsAccess,
  type KeyRecord,
  type KeyScope,
} from '../../../core/accounts/permission.ts'
import type { GivenLimits } from '../../../core/accounts/quotas.ts'
import type { KeyId, OwnerId } from '../../../core/ids.ts'
import { KEY_LIMIT_NAMES, type KeyLimitName, type KeyLimits } from '../../../core/key-limits.ts'
import type { KeyChanges, NewKey } from '../../../services/accounts/keys.ts'
import type { QuotaUse } from '../../../services/accounts/quotas.ts'
import { s3Url } from '../../addresses.ts'
import type { ApiParts } from '../../parts.ts'
import { type Members, type RestRoute, route } from '../route.ts'
import {
  AccountBody,
  AccountList,
  AccountQuotas,
  ApproveLogin,
  CreateAccount,
  CreatedKeyBody,
  CreateKey,
  DenyLogin,
  KeyBody,
  KeyList,
  LoginBody,
  RotateKey,
  SshKeys,
  UpdateAccount,
  UpdateKey,
  UpdateSshKeys,
} from '../schemas/account.ts'
import { IdParam } from '../schemas/common.ts'

const TAG = 'Account'

/** API keys, accounts and public SSH keys. */
export function accountRoutes(parts: ApiParts): RestRoute[] {
  return [...keyRoutes(parts), ...loginRoutes(parts), ...accountList(parts), quotaRoute(parts), ...sshKeyRoutes(parts)]
}

function keyRoutes({ keys, addresses }: ApiParts): RestRoute[] {
  const one = '/v2/account/keys/{id}'
  const newKeyBody = ({ record, key, s3Secret }: NewKey) => {
    const pair = { endpointUrl: s3Url(addresses), accessKeyId: record.id, secretAccessKey: s3Secret }
    return { ...keyBody(record), key, s3: hasFiles(record.scope) ? pair : null }
  }
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/keys',
        operationId: 'listKeys',
        tag: TAG,
        level: 'read',
        summary: "The API keys of the caller's account, never the keys themselves",
        success: { status: 200, schema: KeyList },
      },
      async ({ caller }) => ({ keys: (await keys.list(caller)).map(keyBody) }),
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/keys',
        operationId: 'createKey',
        tag: TAG,
        level: 'write',
        summary: 'Creates an API key; this is the only answer that shows it',
        body: { name: 'CreateApiKeyRequest', shape: CreateKey, operatorMembers: ['exempt'] },
        success: { status: 201, schema: CreatedKeyBody },
        problems: [400],
      },
      async ({ caller, body }) => {
        const { name, exempt = false, account } = body
        const made = await keys.create(caller, {
          name,
          exempt,
          scope: scopeFromBody(body.scope),
          expiresAtMs: instant(body.expiresAt) ?? null,
          ...(body.limits === undefined ? {} : { limits: changedLimits({}, body.limits) }),
          ...(body.accounting === undefined ? {} : { accounting: body.accounting }),
          ...(account === undefined ? {} : { account: account as OwnerId }),
        })
        return newKeyBody(made)
      },
    ),
    route(
      {
        method: 'post',
        path: `${one}/rotate`,
        operationId: 'rotateKey',
        tag: TAG,
        level: 'write',
        summary: 'Gives a new key with the rights, limits and expiry of another one, which goes on for a while',
        params: IdParam,
        body: { name: 'RotateApiKeyRequest', shape: RotateKey },
        success: { status: 201, schema: CreatedKeyBody },
        problems: [400, 404, 409],
      },
      async ({ caller, params, body }) =>
        newKeyBody(await keys.rotate(caller, params.id as KeyId, body.overlapSeconds * 1_000)),
    ),
    route(
      {
        method: 'get',
        path: one,
        operationId: 'getKey',
        tag: TAG,
        level: 'read',
        summary: 'One API key',
        params: IdParam,
        success: { status: 200, schema: KeyBody },
        problems: [404],
      },
      async ({ caller, params }) => keyBody(await keys.find(caller, params.id as KeyId)),
    ),
    route(
      {
        method: 'patch',
        path: one,
        operationId: 'updateKey',
        tag: TAG,
        level: 'write',
        summary: 'Renames, limits, disables or enables an API key',
        params: IdParam,
        body: { name: 'UpdateApiKeyRequest', shape: UpdateKey },
        success: { status: 200, schema: KeyBody },
        problems: [400, 404, 409],
      },
      async ({ caller, params, body }) => {
        const id = params.id as KeyId
        const { limits } = body
        const previous = limits === undefined ? {} : ((await keys.find(caller, id)).limits ?? {})
        const changes = { ...keyChanges(body), ...(limits && { limits: changedLimits(previous, limits) }) }
        return keyBody(await keys.update(caller, id, changes))
      },
    ),
    route(
      {
        method: 'delete',
        path: one,
        operationId: 'deleteKey',
        tag: TAG,
        level: 'write',
        summary: 'Revokes an API key at once; an endpoint whose key it is has none until that is rotated',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404, 409],
      },
      async ({ caller, params }) => keys.remove(caller, params.id as KeyId),
    ),
  ]
}

/**
 * Logins of command lines, for the person who approves them. The id of an approved one is worth its key, so it is in
 * no path of a change: events have those.
 */
function loginRoutes({ logins }: ApiParts): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/logins/{id}',
        operationId: 'getLogin',
        tag: TAG,
        level: 'read',
        summary: 'A program that asks for a key, as rp login does',
        params: IdParam,
        success: { status: 200, schema: LoginBody },
        problems: [404],
      },
      async ({ params }) => loginBody(logins.find(params.id)),
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/login-approvals',
        operationId: 'createKeyForLogin',
        tag: TAG,
        level: 'write',
        summary: 'Creates an API key for a program that asks, which gets it once; the answer does not show it',
        body: { name: 'ApproveLoginRequest', shape: ApproveLogin },
        success: { status: 201, schema: KeyBody },
        problems: [400, 404, 409],
      },
      async ({ caller, body: { id, name, scope, expiresAt } }) => {
        // No key lives longer than the one that creates it.
        const endMs = instant(expiresAt)
        const expiresAtMs = endMs === undefined ? caller.expiresAtMs : endMs
        const input = { name, scope: scopeFromBody(scope), expiresAtMs }
        return keyBody(await logins.approve(caller, id, input))
      },
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/login-denials',
        operationId: 'denyLogin',
        tag: TAG,
        level: 'write',
        summary: 'Refuses a program that asks for a key',
        body: { name: 'DenyLoginRequest', shape: DenyLogin },
        success: { status: 200, schema: LoginBody },
        problems: [400, 404, 409],
      },
      async ({ body }) => loginBody(logins.deny(body.id)),
    ),
  ]
}

function accountList({ accounts }: ApiParts): RestRoute[] {
  const oneAccount = '/v2/account/accounts/{id}'
  return [
    route(
      {
        method: 'get',
        path: '/v2/account/accounts',
        operationId: 'listAccounts',
        tag: TAG,
        level: 'operator',
        summary: "The accounts of this installation; for keys with all rights of the operator's account",
        success: { status: 200, schema: AccountList },
      },
      async ({ caller }) => ({ accounts: (await accounts.list(caller)).map(accountBody) }),
    ),
    route(
      {
        method: 'post',
        path: '/v2/account/accounts',
        operationId: 'createAccount',
        tag: TAG,
        level: 'operator',
        summary: "Creates an account with objects of its own; for keys with all rights of the operator's account",
        body: { name: 'CreateAccountRequest', shape: CreateAccount },
        success: { status: 201, schema: AccountBody },
        problems: [400],
      },
      async ({ caller, body }) => accountBody(await accounts.create(caller, body.name)),
    ),
    route(
      {
        method: 'get',
        path: oneAccount,
        operationId: 'getAccount',
        tag: TAG,
        level: 'read',
        summary:
          "One account: the caller's, which is also called 'own', or any for keys with all rights of the operator's account",
        params: IdParam,
        success: { status: 200, schema: AccountBody },
        problems: [404],
      },
      async ({ caller, params }) => accountBody(await accounts.find(caller, accountId(caller, params.id))),
    ),
    route(
      {
        method: 'patch',
        path: oneAccount,
        operationId: 'updateAccount',
        tag: TAG,
        level: 'write',
        summary:
          "Changes what an account has chosen, and for keys with all rights of the operator's account its name and limits",
        params: IdParam,
        body: { name: 'UpdateAccountRequest', shape: UpdateAccount, operatorMembers: ['name', 'limits'] },
        success: { status: 200, schema: AccountBody },
        problems: [400, 404],
      },
      async ({ caller, params, body: { name, deleteRunningEndpoints, limits } }) => {
        const changes = {
          ...(name === undefined ? {} : { name }),
          ...(deleteRunningEndpoints === undefined ? {} : { deleteRunningEndpoints }),
          ...(limits === undefined ? {} : { limits: limits as GivenLimits }),
        }
        return accountBody(await accounts.update(caller, accountId(caller, params.id), changes))
      },
    ),
  ]
}

function quotaRoute({ accounts, quotas }: ApiParts): RestRoute {
  return route(
    {
      method: 'get',
      path: '/v2/account/accounts/{id}/quotas',
      operationId: 'getQuotas',
      tag: TAG,
      level: 'read',
      summary: 'What an account has of everything that is limited, and its limits; objects are counted by kind',
      params: IdParam,
      success: { status: 200, schema: AccountQuotas },
      problems: [404],
    },
    async ({ caller, params }) => {
      const { id } = await accounts.find(caller, accountId(caller, params.id))
      return { quotas: quotaBody(await quotas.use(id)) }
    },
  )
}

/** Megabytes are MiB, rounded up. */
function quotaBody({ limits, objects, held, secretBytes, buildBytes, logBytes, workers, gpus }: QuotaUse) {
  const { workersMin, ...kinds } = objects
  const megabytes = (bytes: number) => Math.ceil(bytes / 1024 / 1024)
  const counted = Object.entries(kinds).map(([kind, used]) => [kind, { used, limit: limits.objects }] as const)
  return {
    ...Object.fromEntries(counted),
    workersMin: { used: workersMin, limit: limits.workersMin },
    workers: { used: workers, limit: limits.workers },
    gpus: { used: gpus, limit: limits.gpus },
    queuedJobs: { used: held.queuedJobs, limit: limits.queuedJobs },
    queuedMb: { used: megabytes(held.queuedBytes), limit: limits.queuedMb },
    storedMb: { used: megabytes(held.storedBytes), limit: limits.storedMb },
    secretsMb: { used: megabytes(secretBytes), limit: limits.secretsMb },
    buildsMb: { used: megabytes(buildBytes), limit: limits.buildsMb },
    logsMb: { used: megabytes(logBytes), limit: limits.logsMb },
  }
}

function sshKeyRoutes({ accounts }: ApiParts): RestRoute[] {
  const path = '/v2/account/ssh-keys'
  return [
    route(
      {
        method: 'get',
        path,
        operationId: 'getSshKeys',
        tag: TAG,
        level: 'read',
        summary: 'The public SSH keys of the account',
        success: { status: 200, schema: SshKeys },
      },
      async ({ caller }) => ({ keys: await accounts.sshKeys(caller.owner) }),
    ),
    route(
      {
        method: 'put',
        path,
        operationId: 'updateSshKeys',
        tag: TAG,
        level: 'write',
        summary: 'Replaces the public SSH keys of the account',
        body: { name: 'UpdateSshKeysRequest', shape: UpdateSshKeys },
        success: { status: 200, schema: SshKeys },
        problems: [400],
      },
      async ({ caller, body }) => ({ keys: await accounts.replaceSshKeys(caller.owner, body.keys) }),
    ),
  ]
}

function keyChanges(body: Partial<Members<typeof UpdateKey>>): KeyChanges {
  const expiresAtMs = instant(body.expiresAt)
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.scope === undefined ? {} : { scope: scopeFromBody(body.scope) }),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(body.disabled === undefined ? {} : { disabled: body.disabled }),
    ...(body.accounting === undefined ? {} : { accounting: body.accounting }),
  }
}

function changedLimits(
  previous: KeyLimits,
  given: { readonly [Name in KeyLimitName]?: number | null | undefined },
): KeyLimits {
  const values = KEY_LIMIT_NAMES.map(name => [name, given[name] === undefined ? previous[name] : given[name]] as const)
  return Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== null))
}

function instant(text: string | null | undefined): number | null | undefined {
  return typeof text === 'string' ? Date.parse(text) : text
}

function scopeFromBody(scope: NonNullable<Members<typeof UpdateKey>['scope']>): KeyScope {
  if (scope.type !== 'restricted') return scope
  const { management, jobs, metrics = 'none', files = 'none', models = [] } = scope
  return {
    type: 'restricted',
    management,
    jobs: jobs as JobsAccess,
    ...(metrics === 'none' ? {} : { metrics }),
    ...(files === 'none' ? {} : { files: files as FilesAccess }),
    ...(models.length === 0 ? {} : { models }),
  }
}

/** A key as the API shows it. */
export function keyBody(key: KeyRecord): KeyBody {
  const { id, name, hint, owner, endpointId, exempt, disabled, createdAtMs, expiresAtMs, lastUsedAtMs } = key
  return {
    id,
    name,
    hint,
    scope: key.scope as KeyBody['scope'],
    account: owner,
    endpoint: endpointId,
    exempt,
    limits: {
      requestsPerMinute: key.limits?.requestsPerMinute ?? null,
      tokensPerMinute: key.limits?.tokensPerMinute ?? null,
      tokensPerDay: key.limits?.tokensPerDay ?? null,
    },
    accounting: key.accounting === true,
    disabled,
    createdAt: new Date(createdAtMs).toISOString(),
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    lastUsedAt: lastUsedAtMs === null ? null : new Date(lastUsedAtMs).toISOString(),
  }
}

function loginBody({ askedAtMs, expiresAtMs, ...login }: LoginRequest) {
  const askedAt = new Date(askedAtMs).toISOString()
  return { ...login, askedAt, expiresAt: new Date(expiresAtMs).toISOString() }
}

/** Account id in a path: `own` is the caller's account, because a caller with only a key may lack its id. */
export function accountId({ owner }: Caller, text: string): OwnerId {
  return text === 'own' ? owner : (text as OwnerId)
}

function accountBody({ id, name, createdAtMs, deleteRunningEndpoints, limits }: Account) {
  return { id, name, createdAt: new Date(createdAtMs).toISOString(), deleteRunningEndpoints, limits }
}
