import { toAppError } from '../../core/errors.ts'
import { PAYLOAD_KINDS, type PayloadKind } from '../../core/secrets/seals.ts'
import type { Ports } from '../../ports/ports.ts'
import { SEAL_KINDS, type SealedText, type SealKind } from '../../ports/store/management-store.ts'
import { PayloadSeals } from './payload-seals.ts'

/** Number of texts of one step: a small one for large texts. */
const STEP: Readonly<Record<SealKind, number>> = {
  keyCanaries: 1,
  secrets: 1,
  webhookKeys: 100,
  registries: 100,
  alertReceivers: 100,
  endpointKeys: 100,
  jobs: 5,
  templates: 100,
  endpoints: 100,
  releases: 20,
  jobInputs: 5,
  recordInputs: 5,
  largeTextParts: 20,
  jobWebhooks: 100,
  draftInputs: 5,
  draftWebhooks: 100,
  batchWebhooks: 100,
  deliveries: 100,
}
/** Kinds of plain payloads that stay for long. Inputs end with their jobs. */
const LASTING = [
  ...(['templates', 'endpoints', 'releases', 'jobWebhooks', 'draftWebhooks', 'batchWebhooks', 'deliveries'] as const),
] as const
const MAX_NAMED = 20

/** The outcome for all sealed texts. */
export interface ReEncryption {
  /** Number of texts that are now sealed with the current key. */
  readonly resealed: number
  /** Number of texts that already had the current key. */
  readonly current: number
  /** Number of texts that no known key opens; they stay unchanged. */
  readonly unreadable: number
  /** The first of the unreadable ones, each as `kind id`. */
  readonly named: readonly string[]
}

/**
 * Seals again all texts that are sealed with another key than the current one, or in an older form, in small steps.
 * Each step is stored by itself, so this can end at any moment and be called again.
 * @param report called after each step
 */
export async function reEncryptAll(
  { store, vault }: Pick<Ports, 'store' | 'vault'>,
  report: (so: ReEncryption) => void = () => {},
): Promise<ReEncryption> {
  const done = { resealed: 0, current: 0, unreadable: 0, named: [] as string[] }
  for (const kind of SEAL_KINDS) {
    for (let after = ''; ; ) {
      const texts = await store.seals.list(kind, after, STEP[kind])
      if (texts.length === 0) break
      const changes: { id: string; previous: string; next: string }[] = []
      for (const text of texts) {
        const { id, sealed } = text
        const again = reseal(vault, kind, text)
        if (again === 'unreadable') {
          done.unreadable += 1
          if (done.named.length < MAX_NAMED) done.named.push(`${kind} ${id}`)
        } else if (again === null) done.current += 1
        else changes.push({ id, previous: sealed, next: again })
      }
      if (changes.length > 0) done.resealed += await store.seals.replace(kind, changes)
      after = texts.at(-1)!.id
      report({ ...done })
    }
  }
  return done
}

/**
 * Seals plain variables of templates, endpoints and releases and plain URLs of webhooks, in small steps as {@link
 * reEncryptAll}.
 * @returns the number of texts that were not wholly sealed
 */
export async function encryptPlain({ store, vault }: Pick<Ports, 'store' | 'vault'>): Promise<number> {
  const seals = new PayloadSeals(vault, true)
  let count = 0
  for (const kind of LASTING) {
    for (let after = ''; ; ) {
      const texts = await store.seals.listPayloads(kind, after, STEP[kind])
      if (texts.length === 0) break
      const changes = texts
        .map(({ id, row, sealed }) => ({ id, previous: sealed, next: seals.sealedText(kind, row, sealed) }))
        .filter(change => change.next !== change.previous)
      if (changes.length > 0) count += await store.seals.replace(kind, changes)
      after = texts.at(-1)!.id
    }
  }
  return count
}

function reseal(vault: Ports['vault'], kind: SealKind, { sealed, row }: SealedText): string | null | 'unreadable' {
  try {
    if (isPayload(kind)) {
      const again = new PayloadSeals(vault, true).resealedText(kind, row, sealed)
      return again === sealed ? null : again
    }
    return vault.reseal(sealed, { kind, row })
  } catch (thrown) {
    if (toAppError(thrown).code !== 'internal') throw thrown
    return 'unreadable'
  }
}

function isPayload(kind: SealKind): kind is PayloadKind {
  return (PAYLOAD_KINDS as readonly string[]).includes(kind)
}
