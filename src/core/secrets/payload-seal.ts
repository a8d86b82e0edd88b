import { SEALED_MARK } from './seal-place.ts'

/** Kinds of seals whose texts may be plain too: they are sealed only if the operator chose that (docs/adr/0042). */
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

/**
 * True if a text of the store is a sealed payload. No input or URL begins with the mark, and a variable that does
 * is always sealed.
 */
export function isSealedPayload(text: string): boolean {
  return text.startsWith(SEALED_MARK)
}
