import type { SecretId } from '../../../core/ids.ts'
import type { Secret } from '../../../core/secrets/secret.ts'
import type { Secrets } from '../../../services/secrets/secrets.ts'
import type { ApiParts } from '../../parts.ts'
import { type RestRoute, type Rule, route } from '../route.ts'
import { CreateSecret, SecretBody, SecretList, SecretQuery, UpdateSecret } from '../schemas/account.ts'
import { IdParam, pagination } from '../schemas/common.ts'

const TAG = 'Account'
const ALL = '/v2/account/secrets'
const ONE = '/v2/account/secrets/{id}'
/** Maximum body in bytes. A value may have 16 MiB, and JSON escapes common characters as two. */
const MAX_BODY_BYTES = 33 * 1024 * 1024
const MAX_VALUE_BYTES = 16 * 1024 * 1024

/** Routes of secrets. Only workers see their values. */
export function secretRoutes(parts: ApiParts): RestRoute[] {
  return [...collection(parts.secrets), ...single(parts.secrets)]
}

function collection(secrets: Secrets): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: ALL,
        operationId: 'listSecrets',
        tag: TAG,
        level: 'read',
        summary: 'The secrets of the caller without their values',
        query: SecretQuery,
        success: { status: 200, schema: SecretList },
        problems: [400],
      },
      async ({ caller, query: { name, ...page } }) => {
        if (name !== undefined) {
          const secret = await secrets.findByName(caller.owner, name)
          return { secrets: secret === null ? [] : [secretBody(secret)], pagination: pagination(null) }
        }
        const { items, nextCursor } = await secrets.list(caller.owner, page)
        return { secrets: items.map(secretBody), pagination: pagination(nextCursor) }
      },
    ),
    route(
      {
        method: 'post',
        path: ALL,
        operationId: 'createSecret',
        tag: TAG,
        level: 'write',
        summary: 'Saves a secret',
        body: {
          name: 'CreateSecretRequest',
          shape: CreateSecret,
          rules: [reservedName, valueFits as Rule<typeof CreateSecret>],
          maxBytes: MAX_BODY_BYTES,
        },
        success: { status: 201, schema: SecretBody },
        problems: [400, 409],
      },
      async ({ caller, body: { name, value, description } }) =>
        secretBody(await secrets.create(caller.owner, name, value, description ?? null)),
    ),
  ]
}

function single(secrets: Secrets): RestRoute[] {
  return [
    route(
      {
        method: 'get',
        path: ONE,
        operationId: 'getSecret',
        tag: TAG,
        level: 'read',
        summary: 'One secret without its value',
        params: IdParam,
        success: { status: 200, schema: SecretBody },
        problems: [404],
      },
      async ({ caller, params }) => secretBody(await secrets.find(caller.owner, params.id as SecretId)),
    ),
    route(
      {
        method: 'patch',
        path: ONE,
        operationId: 'updateSecret',
        tag: TAG,
        level: 'write',
        summary: 'Replaces the value or the description of a secret; workers that start from then on see the new value',
        params: IdParam,
        body: {
          name: 'UpdateSecretRequest',
          shape: UpdateSecret,
          rules: [valueFits as Rule<typeof UpdateSecret>],
          maxBytes: MAX_BODY_BYTES,
        },
        success: { status: 200, schema: SecretBody },
        problems: [400, 404],
      },
      async ({ caller, params, body: { value, description } }) => {
        const changes = {
          ...(value === undefined ? {} : { value }),
          ...(description === undefined ? {} : { description }),
        }
        return secretBody(await secrets.update(caller.owner, params.id as SecretId, changes))
      },
    ),
    route(
      {
        method: 'delete',
        path: ONE,
        operationId: 'deleteSecret',
        tag: TAG,
        level: 'write',
        summary: 'Removes a secret; workers that need it no longer start',
        params: IdParam,
        success: { status: 204, schema: null },
        problems: [404],
      },
      async ({ caller, params }) => secrets.remove(caller.owner, params.id as SecretId),
    ),
  ]
}

const reservedName: Rule<typeof CreateSecret> = ({ name }) =>
  name !== undefined && /^RUNPOD/i.test(name) ? ['$.name: must not begin with RUNPOD'] : []

const valueFits: Rule<typeof UpdateSecret> = ({ value }) =>
  value !== undefined && Buffer.byteLength(value) >= MAX_VALUE_BYTES ? ['$.value: must be smaller than 16 MiB'] : []

function secretBody({ id, name, description, createdAtMs, valueUpdatedAtMs }: Secret): SecretBody {
  return {
    id,
    name,
    description,
    createdAt: new Date(createdAtMs).toISOString(),
    valueLastUpdatedAt: valueUpdatedAtMs === null ? null : new Date(valueUpdatedAtMs).toISOString(),
  }
}
