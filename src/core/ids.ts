/** A string that only the code that makes or checks such ids may produce; two brands never mix. */
export type Brand<Name extends string> = string & { readonly __brand: Name }

/** An account: every stored object belongs to exactly one. */
export type OwnerId = Brand<'owner'>
/** An endpoint: lower-case letters and digits, since it is also a host name. */
export type EndpointId = Brand<'endpoint'>
/** A template: the description of a worker. */
export type TemplateId = Brand<'template'>
/** A worker: one process or container that runs jobs of one endpoint. */
export type WorkerId = Brand<'worker'>
/** A job: URL-safe and without commas, because workers list the ids in a query joined by commas. */
export type JobId = Brand<'job'>
/** An API key's record, not the key itself. */
export type KeyId = Brand<'key'>
/** A secret's record, not its value. */
export type SecretId = Brand<'secret'>

/** A saved credential for a container registry. */
export type RegistryId = Brand<'registry'>
/** A network volume: lower-case letters and digits, since it is also the name of a folder. */
export type VolumeId = Brand<'volume'>
/** A batch: requests that become jobs together. */
export type BatchId = Brand<'batch'>

/** An app: environments and builds of functions that were deployed together. */
export type AppId = Brand<'app'>
/** An environment of an app. */
export type EnvironmentId = Brand<'environment'>
/** A build of an app: lower-case letters and digits, since it is also the name of a folder. */
export type BuildId = Brand<'build'>
/** The key of an artifact: the name of its file. Its form is that of a build's id. */
export type ArtifactKey = Brand<'artifact'>

/** A receiver of the alerts of an account. */
export type ReceiverId = Brand<'receiver'>

/** A delivery of a webhook; also its message id, so it has no dot. */
export type DeliveryId = Brand<'delivery'>

/** In place of the id of an endpoint: headers name the endpoint by its app, environment and name. */
export const FLASH = 'flash'

/** First path segments below `/v2/` that belong to the management API, so they can never be endpoint ids. */
export const RESERVED_SEGMENTS: ReadonlySet<string> = new Set([
  'serverless',
  'templates',
  'network-volumes',
  'global-volumes',
  'registries',
  'catalog',
  'billing',
  'account',
  'events',
  'overview',
  'machine',
  'audit',
  'pods',
  'clusters',
  'sandboxes',
  FLASH,
  'openapi.json',
  'docs',
])

/** Host names of the server itself: endpoint ids are host names too. */
const RESERVED_HOSTS: ReadonlySet<string> = new Set(['console', 'models'])

/** True if a path segment can be an endpoint id: it is no reserved word and has only the characters of ids. */
export function isEndpointId(text: string): text is EndpointId {
  return /^[a-z0-9]{1,63}$/.test(text) && !RESERVED_SEGMENTS.has(text) && !RESERVED_HOSTS.has(text)
}

/**
 * A UUID that begins with the time (version 7, RFC 9562, section 5.7), made of a random one. Rows with such keys are
 * neighbors in an index, so that the jobs of one commit change few pages: an insert costs half of one with random
 * keys.
 */
export function timeOrderedUuid(random: string, nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice('xxxxxxxx-xxxx-v'.length)}`
}

/** Time of an id from {@link timeOrderedUuid}, with any text around it; null for any other id. */
export function timeFromId(id: string): number | null {
  const [, high, low] = /(?:^|-)([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/.exec(id) ?? []
  return high === undefined ? null : Number.parseInt(`${high}${low}`, 16)
}

/** End of each job id that this server makes, in place of a region. */
export const JOB_ID_END = '-u1'

/** True for a path segment in the form of a job id of this server. */
export function isJobId(text: string): text is JobId {
  return /^[A-Za-z0-9_-]{1,128}$/.test(text)
}

/** The first account: the operator's. It manages all others. */
export const DEFAULT_OWNER = 'owner' as OwnerId
