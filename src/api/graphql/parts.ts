import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store/store.ts'
import type { Access } from '../../services/accounts/access.ts'
import type { Accounts } from '../../services/accounts/accounts.ts'
import type { Keys } from '../../services/accounts/keys.ts'
import type { BillCalculator } from '../../services/billing/bill-calculator.ts'
import type { Endpoints } from '../../services/endpoints/endpoints.ts'
import type { Templates } from '../../services/endpoints/templates.ts'
import type { Volumes } from '../../services/endpoints/volumes.ts'
import type { Catalog } from '../../services/hardware/catalog.ts'
import type { Registries } from '../../services/secrets/registries.ts'
import type { Secrets } from '../../services/secrets/secrets.ts'
import type { AuditParts } from '../audited.ts'

/** Dependencies of the GraphQL surface. */
export interface GraphqlParts extends AuditParts {
  readonly access: Access
  readonly accounts: Accounts
  readonly billing: BillCalculator
  readonly catalog: Catalog
  readonly endpoints: Endpoints
  readonly keys: Keys
  readonly registries: Registries
  readonly secrets: Secrets
  readonly templates: Templates
  readonly volumes: Volumes
  readonly store: Store
  readonly emit: Emit
}
