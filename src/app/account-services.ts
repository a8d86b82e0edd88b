import { NO_LIMITS } from '../core/accounts/quotas.ts'
import { NO_PRICES } from '../core/billing/prices.ts'
import type { Ports } from '../ports/ports.ts'
import { Access } from '../services/accounts/access.ts'
import { Accounts } from '../services/accounts/accounts.ts'
import { Keys } from '../services/accounts/keys.ts'
import { Quotas } from '../services/accounts/quotas.ts'
import { Sessions } from '../services/accounts/sessions.ts'
import { SHARING_RULES, Sharing } from '../services/accounts/sharing.ts'
import { Billing } from '../services/billing/billing.ts'
import type { AppConfig } from './config.ts'

/** Callers, their rights and quotas, and billing. */
export interface AccountServices {
  readonly access: Access
  readonly sharing: Sharing
  readonly quotas: Quotas
  readonly accounts: Accounts
  readonly keys: Keys
  readonly sessions: Sessions
  readonly billing: Billing
}

export function createAccountServices(ports: Ports, config: AppConfig): AccountServices {
  const access = new Access(ports, config.rateWindows, config.limitJobs)
  const sharing = new Sharing(ports, { ...SHARING_RULES, ...config.sharing })
  const quotas = new Quotas(ports, config.accountLimits ?? NO_LIMITS)
  return {
    access,
    sharing,
    quotas,
    accounts: new Accounts(ports, sharing, quotas),
    keys: new Keys(ports, access),
    sessions: new Sessions(ports, access),
    billing: new Billing(ports, config.prices ?? NO_PRICES),
  }
}
