import type { Emit } from '../../events.ts'
import type { Store } from '../../ports/store.ts'
import type { Access } from '../../services/access.ts'
import type { Accounts } from '../../services/accounts.ts'
import type { Billing } from '../../services/billing.ts'
import type { Catalog } from '../../services/catalog.ts'
import type { Endpoints } from '../../services/endpoints.ts'
import type { Keys } from '../../services/keys.ts'
import type { Registries } from '../../services/registries.ts'
import type { Secrets } from '../../services/secrets.ts'
import type { Templates } from '../../services/templates.ts'
import type { Volumes } from '../../services/volumes.ts'

/** What the GraphQL surface uses. */
export interface GraphqlParts {
  readonly access: Access
  readonly accounts: Accounts
  readonly billing: Billing
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
