import { flag } from './setting.ts'

/** The settings of what is sealed in the database besides secrets. */
export const SEALING_SETTINGS = {
  sealPayloads: flag(
    '--seal-payloads',
    'seal inputs of jobs, URLs of webhooks and variables of templates and endpoints in the database',
  ),
}
