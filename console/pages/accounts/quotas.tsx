/** What accounts have of what is limited. */
import { api } from '../../client/api.ts'
import { type Resource, useResource } from '../../client/resource.ts'
import { count } from '../../format.ts'

/** What is used, and the limit where there is one. */
export interface QuotaUse {
  readonly used: number
  readonly limit: number | null
}

/** Quotas change with each job of another account, of which no event tells the operator. */
const EVERY_MS = 15_000
/** From this share on a bar warns. */
const NEARLY = 0.9

/** Reads the quotas of an account. Cells of one row share a read. */
export function useQuotas(account: string): Resource<Readonly<Record<string, QuotaUse>>> {
  return useResource(`quotas ${account}`, () => shared(account), { everyMs: EVERY_MS })
}

/** Reads on their way. */
const reading = new Map<string, Promise<Readonly<Record<string, QuotaUse>>>>()

function shared(account: string): Promise<Readonly<Record<string, QuotaUse>>> {
  const known = reading.get(account)
  if (known !== undefined) return known
  const read = api('GET /v2/account/accounts/{id}/quotas', { path: { id: account } })
    .then(({ quotas }) => quotas)
    .finally(() => reading.delete(account))
  reading.set(account, read)
  return read
}

/** A quota as numbers and a bar. */
export function Used({ quota: { used, limit } }: { readonly quota: QuotaUse }) {
  if (limit === null) return <>{count(used)}</>
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <span class="used" title={`${count(used)} of ${count(limit)}`}>
      {count(used)} <span class="faint">of {count(limit)}</span>
      <span class={`meter${share >= NEARLY ? ' full' : ''}`} aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  )
}
