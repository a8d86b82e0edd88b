import type { ApiKey } from '../../client/api-types.d.ts'
import { Ago } from '../../parts/basic.tsx'

/** The time of the last use of a key. */
export function LastUsed({ of: { lastUsedAt } }: { readonly of: ApiKey }) {
  return lastUsedAt === null ? <span class="faint">never</span> : <Ago at={lastUsedAt} suffix=" ago" />
}
