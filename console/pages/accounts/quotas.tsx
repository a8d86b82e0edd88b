/** Quotas of accounts. */
import { api } from '../../client/api.ts'
import { type Resource, useResource } from '../../client/resource.ts'
import { count } from '../../format.ts'

/** The used amount, and the limit if there is one. */
export interface QuotaUse {
  readonly used: number
  readonly limit: number | null
}

/** Interval of reads: quotas change with each job of another account, and the operator receives no event of it. */
const EVERY_MS = 15_000
/** Share of a limit from which its bar warns. */
const NEARLY = 0.9

/** Reads the quotas of an account. Cells of one row share a read. */
export function useQuotas(account: string): Resource<Readonly<Record<string, QuotaUse>>> {
  return useResource(`quotas ${account}`, () => shared(account), { everyMs: EVERY_MS })
}

/** Reads in progress, by account. */
const reading = new Map<string, Promise<Readonly<Record<string, QuotaUse>>>>()

function shared(account: string): Promise<Readonly<Record<string, QuotaUse>>> {
  const pending = reading.get(account)
  if (pending !== undefined) return pending
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
