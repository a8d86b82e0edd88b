import { AUDIT_RULES } from '../core/audit/entry.ts'
import { setting, wholeNumber } from './setting.ts'

const DAY_MS = 24 * 60 * 60_000

/** The settings of the audit log. */
export const AUDIT_SETTINGS = {
  audit: {
    keptMs: setting(
      '--audit-retention',
      '<days>',
      String(AUDIT_RULES.keptMs / DAY_MS),
      wholeNumber(1, 36_500, DAY_MS),
      'how long entries of the audit log are kept',
    ),
    maxEntries: setting(
      '--audit-entries',
      '<number>',
      String(AUDIT_RULES.maxEntries),
      wholeNumber(1_000, 1_000_000_000),
      'maximum entries of the audit log; the oldest go first',
    ),
  },
}
