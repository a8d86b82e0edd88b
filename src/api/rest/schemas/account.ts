import { z } from '@hono/zod-openapi'
import { MAX_SSH_KEY, MAX_SSH_KEYS, SSH_KEY } from '../../../core/accounts/account.ts'
import { SCOPE_MODELS } from '../../../core/accounts/permission.ts'
import { ACCOUNT_LIMIT_NAMES, type AccountLimitName, MAX_LIMIT } from '../../../core/accounts/quotas.ts'
import { MAX_OVERLAP_MS } from '../../../core/accounts/rotation.ts'
import { GLOBAL_VOLUME_GB } from '../../../core/endpoints/volume.ts'
import { DATA_CENTERS } from '../../../core/hardware/catalog-types.ts'
import { MAX_KEY_LIMIT } from '../../../core/key-limits.ts'
import { MAX_CREDENTIAL } from '../../../core/secrets/registry.ts'
import { DateTime, Id, listed, Name, PageQuery, Pagination, text } from './common.ts'

/** A saved credential of a container registry; the credential itself is never shown. */
export const RegistryBody = z.object({ id: z.string(), name: z.string() }).openapi('Registry')

/** All credentials of the caller. */
export const RegistryList = z
  .object({ registries: z.array(RegistryBody), pagination: Pagination })
  .openapi('ListRegistriesResponse')

/** Body that saves a credential. */
export const CreateRegistry = { name: Name, username: text(MAX_CREDENTIAL), password: text(MAX_CREDENTIAL) }

const VolumeType = z.enum(['STANDARD', 'HIGH_PERFORMANCE']).openapi('VolumeType')
const VolumeSize = z.int().min(10).max(4096)

/** A network volume. */
export const VolumeBody = z
  .object({ id: z.string(), name: z.string(), size: VolumeSize, dataCenter: z.string(), type: VolumeType })
  .openapi('NetworkVolume')

/** All volumes of the caller. */
export const VolumeList = z
  .object({ networkVolumes: z.array(VolumeBody), pagination: Pagination })
  .openapi('ListNetworkVolumesResponse')

/** Body that creates a volume. */
export const CreateVolume = {
  name: Name,
  size: VolumeSize,
  dataCenter: listed(DATA_CENTERS.map(({ id }) => id)),
  type: VolumeType.default('STANDARD'),
}

/** A global volume. */
export const GlobalVolumeBody = z.object({ id: z.string(), name: z.string(), size: VolumeSize }).openapi('GlobalVolume')

/** All global volumes of the caller. */
export const GlobalVolumeList = z
  .object({ globalVolumes: z.array(GlobalVolumeBody), pagination: Pagination })
  .openapi('ListGlobalVolumesResponse')

/** Body that creates a global volume. */
export const CreateGlobalVolume = { name: Name, size: VolumeSize.default(GLOBAL_VOLUME_GB) }

/** Body that changes a volume of either kind. */
export const UpdateVolume = { name: Name.optional(), size: VolumeSize.optional() }

const SecretName = z
  .string()
  .min(1)
  .max(191)
  .regex(/^[a-zA-Z_][a-zA-Z0-9_.\-/]*$/, 'must begin with a letter or _ and have letters, digits and _ . - / only')
const SecretValue = z.string().min(1)
const SecretDescription = z.string().max(65_535)

/** A secret without its value. */
export const SecretBody = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    createdAt: DateTime,
    valueLastUpdatedAt: DateTime.nullable(),
  })
  .openapi('Secret')

/** The shape of {@link SecretBody}. */
export type SecretBody = z.infer<typeof SecretBody>

/** A page of secrets. */
export const SecretList = z
  .object({ secrets: z.array(SecretBody), pagination: Pagination })
  .openapi('ListSecretsResponse')

/** The query of the list of secrets. */
export const SecretQuery = { ...PageQuery, name: z.string().min(1).max(191).optional() }

/** Body that creates a secret. */
export const CreateSecret = { name: SecretName, value: SecretValue, description: SecretDescription.optional() }

/** Body that changes a secret. */
export const UpdateSecret = { value: SecretValue.optional(), description: SecretDescription.nullable().optional() }

const SshKey = z.string().max(MAX_SSH_KEY).regex(SSH_KEY, 'must be of the form: type key comment')

/** The public SSH keys of the caller. */
export const SshKeys = z.object({ keys: z.array(z.string()) }).openapi('SshKeys')

/** Body that replaces all public SSH keys. */
export const UpdateSshKeys = { keys: z.array(SshKey).max(MAX_SSH_KEYS) }

const Level = z.enum(['none', 'read', 'write'])
const Scope = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('all') }),
    z.strictObject({ type: z.literal('read-only') }),
    z.strictObject({
      type: z.literal('restricted'),
      management: Level,
      jobs: z.union([Level, z.record(z.string(), Level)]),
      metrics: z
        .enum(['none', 'read'])
        .optional()
        .openapi({ description: "metrics and status of the whole server; for keys of the operator's account" }),
      files: z
        .union([Level, z.record(z.string(), Level)])
        .optional()
        .openapi({ description: 'files of network volumes over S3, of all or by their ids' }),
      models: z
        .array(z.string().min(1).max(SCOPE_MODELS.characters))
        .max(SCOPE_MODELS.count)
        .optional()
        .openapi({ description: 'models that it may call at /openai/v1, by their names, aliases or endpoint/model' }),
    }),
  ])
  .openapi('KeyScope')

const KeyLimit = z.int().min(1).max(MAX_KEY_LIMIT)
const NullableLimits = {
  requestsPerMinute: KeyLimit.nullable(),
  tokensPerMinute: KeyLimit.nullable(),
  tokensPerDay: KeyLimit.nullable(),
}
/** Limits of a key; null is none. */
const KeyLimitsBody = z.object(NullableLimits).openapi('ApiKeyLimits')
const KeyLimitsInput = z
  .strictObject(NullableLimits)
  .partial()
  .openapi({ description: 'limits on requests whose answers report tokens; null removes one, others are kept' })

/** An API key without the key. */
export const KeyBody = z
  .object({
    id: z.string(),
    name: z.string(),
    hint: z.string().nullable(),
    scope: Scope,
    account: z.string(),
    endpoint: z.string().nullable().openapi({ description: 'the endpoint whose own key it is' }),
    exempt: z.boolean(),
    limits: KeyLimitsBody,
    accounting: z.boolean().openapi({ description: 'streams of its requests report their tokens' }),
    disabled: z.boolean(),
    createdAt: DateTime,
    expiresAt: DateTime.nullable(),
    lastUsedAt: DateTime.nullable(),
  })
  .openapi('ApiKey')

/** The shape of {@link KeyBody}. */
export type KeyBody = z.infer<typeof KeyBody>

/** A page of endpoint keys. */
export const EndpointKeyList = z
  .object({ keys: z.array(KeyBody), pagination: Pagination })
  .openapi('ListEndpointKeysResponse')

/** A new API key. The key and its pair for S3 are shown only once. */
export const CreatedKeyBody = KeyBody.extend({
  key: z.string(),
  s3: z
    .object({ endpointUrl: z.string(), accessKeyId: z.string(), secretAccessKey: z.string() })
    .nullable()
    .openapi({ description: 'its pair for S3; null for a key without a right on files' }),
}).openapi('CreatedApiKey')

/** All keys of the caller's account. */
export const KeyList = z.object({ keys: z.array(KeyBody) }).openapi('ListApiKeysResponse')

const Expiry = z.iso.datetime({ offset: true }).openapi({ format: 'date-time' })

/** Body that creates a key. */
export const CreateKey = {
  name: Name,
  scope: Scope.default({ type: 'all' }),
  expiresAt: Expiry.nullable().optional(),
  exempt: z.boolean().optional(),
  limits: KeyLimitsInput.optional(),
  accounting: z.boolean().optional(),
  account: Id.optional(),
}

/** A program that asks for a key. */
export const LoginBody = z
  .object({
    id: z.string(),
    status: z.enum(['PENDING', 'APPROVED', 'CONSUMED', 'DENIED', 'EXPIRED']).openapi('LoginStatus'),
    address: z.string().openapi({ description: 'the address that the program asked from' }),
    agent: z.string().openapi({ description: 'the name that the program gives itself; it proves nothing' }),
    askedAt: DateTime,
    expiresAt: DateTime,
  })
  .openapi('Login')

/** Body that approves a login. */
export const ApproveLogin = {
  id: Id,
  name: Name,
  scope: Scope.default({ type: 'all' }),
  expiresAt: Expiry.nullable().optional(),
}

/** Body that refuses a login. */
export const DenyLogin = { id: Id }

/** Body that changes a key. */
export const UpdateKey = {
  name: Name.optional(),
  scope: Scope.optional(),
  expiresAt: Expiry.nullable().optional(),
  disabled: z.boolean().optional(),
  limits: KeyLimitsInput.optional(),
  accounting: z.boolean().optional(),
}

/** Body that replaces a key by a new one. */
export const RotateKey = {
  overlapSeconds: z
    .number()
    .int()
    .min(0)
    .max(MAX_OVERLAP_MS / 1_000)
    .default(86_400)
    .openapi({ description: 'time for which the previous key goes on; 0 revokes it at once' }),
}

const Limit = z.number().int().min(0).max(MAX_LIMIT).nullable()
/** Limits of an account; null is unlimited. */
const Limits = z.strictObject(
  Object.fromEntries(ACCOUNT_LIMIT_NAMES.map(name => [name, Limit.optional()])) as LimitInputShape,
)
type LimitInputShape = Record<AccountLimitName, z.ZodOptional<typeof Limit>>

/** An account of this installation with its own limits. */
export const AccountBody = z
  .object({
    id: z.string(),
    name: z.string(),
    createdAt: DateTime,
    deleteRunningEndpoints: z.boolean(),
    limits: Limits,
  })
  .openapi('Account')

/** All accounts of this installation. */
export const AccountList = z.object({ accounts: z.array(AccountBody) }).openapi('ListAccountsResponse')

/** Body that creates an account. */
export const CreateAccount = { name: Name }

/** Body that changes an account. */
export const UpdateAccount = {
  name: Name.optional(),
  deleteRunningEndpoints: z.boolean().optional(),
  limits: Limits.optional(),
}

const Figure = z.object({ used: z.number(), limit: z.number().nullable() })

/** Usage and limits of an account. */
export const AccountQuotas = z.object({ quotas: z.record(z.string(), Figure) }).openapi('AccountQuotas')
