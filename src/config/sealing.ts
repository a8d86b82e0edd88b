/** The settings about what is sealed in the database. */
import { flag, type Setting } from './setting.ts'

/** What is sealed besides secrets. */
export interface SealingConfig {
  /** Whether inputs of jobs, URLs of webhooks and variables of templates and endpoints are. */
  readonly sealPayloads: boolean
}

/** By the names of their options, as SETTINGS has them. */
export const SEALING_SETTINGS: Readonly<Record<string, Setting>> = {
  sealPayloads: flag(
    '--seal-payloads',
    'SEAL_PAYLOADS',
    'seal inputs of jobs, URLs of webhooks and variables of templates and endpoints in the database',
  ),
}

/** @param text what was given for each of {@link SEALING_SETTINGS} */
export function sealingConfig(text: (name: string) => string): SealingConfig {
  return { sealPayloads: text('sealPayloads') === 'true' }
}
