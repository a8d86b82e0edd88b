/** Places and kinds of sealed texts; store/operations/secrets/seals.ts finds the same rows. */

/** A text that shows if a server has the encryption key of its database. */
export const KEY_CANARY = 'runyard'

/** Place of {@link KEY_CANARY}. */
export const KEY_CANARY_PLACE = { kind: 'keyCanaries', row: KEY_CANARY } as const

/** The value of a secret. */
export function secretPlace(owner: string, name: string) {
  return { kind: 'secrets', row: `${owner}/${name}` }
}

/** The key that signs the webhooks of an endpoint. */
export function webhookKeyPlace(endpointId: string) {
  return { kind: 'webhookKeys', row: endpointId }
}

/** The password of a registry. */
export function registryPlace(owner: string, id: string) {
  return { kind: 'registries', row: `${owner}/${id}` }
}

/** The address of a receiver of alerts. */
export function receiverPlace(owner: string, id: string) {
  return { kind: 'alertReceivers', row: `${owner}/${id}` }
}

/** The key of an endpoint. */
export function endpointKeyPlace(endpointId: string) {
  return { kind: 'endpointKeys', row: endpointId }
}

/** The `s3Config` of a job. */
export function jobPlace(id: string) {
  return { kind: 'jobs', row: id }
}

/** Prefix of a sealed payload. */
export const SEALED_MARK = 'sealed:'

/** The input of a job; its request in a batch has the same id. */
export function inputPlace(jobId: string) {
  return { kind: 'inputs', row: jobId }
}

/** A part of a large text. @param partId id of the part */
export function textPartPlace(partId: string) {
  return { kind: 'largeTextParts', row: partId }
}

/** The webhook URL of a job or a batch; deliveries copy it. @param about id of the job or batch */
export function webhookUrlPlace(about: string) {
  return { kind: 'webhookUrls', row: about }
}

/** A variable of a template or an endpoint. */
export function variablePlace(owner: string, name: string) {
  return { kind: 'variables', row: `${owner}/${name}` }
}

/** Kinds of seals whose texts may be plain too: they are sealed only if the operator chose that (docs/adr/0042). */
export const PAYLOAD_KINDS = [
  ...([
    'templates',
    'endpoints',
    'releases',
    'jobInputs',
    'recordInputs',
    'largeTextParts',
    'jobWebhooks',
    'draftInputs',
    'draftWebhooks',
  ] as const),
  ...(['batchWebhooks', 'deliveries'] as const),
] as const
/** One of {@link PAYLOAD_KINDS}. */
export type PayloadKind = (typeof PAYLOAD_KINDS)[number]

/** Variables of templates, endpoints and releases by their names. */
export type Variables = Readonly<Record<string, string>>

/**
 * True if a text of the store is a sealed payload. No input or URL begins with the mark. A variable and a part of a
 * large text that do are always sealed.
 */
export function isSealedPayload(text: string): boolean {
  return text.startsWith(SEALED_MARK)
}
