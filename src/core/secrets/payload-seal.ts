import { SEALED_MARK } from './seal-place.ts'

/** The kinds of seals whose texts are there plain as well, and sealed only where the operator chose that (docs/adr/0042). */
export const PAYLOAD_KINDS = [
  ...([
    'templates',
    'endpoints',
    'releases',
    'jobInputs',
    'recordInputs',
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

/** Whether a text of the store is a sealed payload. No input and no URL begins so, and a variable that does is sealed whatever was chosen. */
export function isSealedPayload(text: string): boolean {
  return text.startsWith(SEALED_MARK)
}
