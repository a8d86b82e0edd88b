/** Filters of the list; the address has all of them. */

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { JobStatus } from '../../../client/api-types.d.ts'
import { Button, Choice, State } from '../../../parts/basic.tsx'
import { QueryText } from '../../../parts/query-fields.tsx'
import { useNarrow } from '../../../parts/table.tsx'
import { setQuery } from '../../../router.ts'
import { serverNow } from '../../../server-clock.ts'
import { isFiltered, type JobFilter, localInput, PARAMETERS, readLocalInput, STATUSES } from './job-filter.ts'
import { STATE_WORDS } from './job-parts.tsx'

type Time = 'all' | '15m' | '1h' | '24h' | '7d' | 'custom'

const TIMES: readonly (readonly [Time, string])[] = [
  ['all', 'All'],
  ['15m', '15 min'],
  ['1h', '1 h'],
  ['24h', '24 h'],
  ['7d', '7 d'],
  ['custom', 'Custom'],
]

/** The filters above the list. */
export function Filters({
  filter,
  children,
}: {
  readonly filter: JobFilter
  /** Content at the end of their row. */
  readonly children?: ComponentChildren
}) {
  const isCustom = filter.span === null && (filter.fromMs !== null || filter.toMs !== null)
  const [opensCustom, setOpensCustom] = useState(false)
  const time: Time = filter.span ?? (isCustom || opensCustom ? 'custom' : 'all')
  const choose = (next: Time) => {
    setOpensCustom(next === 'custom')
    if (next !== 'custom') setQuery({ span: next === 'all' ? null : next, from: null, to: null })
    else setQuery({ span: null, from: new Date(serverNow() - 3_600_000).toISOString() })
  }
  const isNarrow = useNarrow()
  const fields = (
    <>
      <div class="chips" role="group" aria-label="States">
        {STATUSES.map(status => (
          <Chip key={status} status={status} filter={filter} />
        ))}
      </div>
      <Choice label="Created" value={time} options={TIMES} onChange={choose} />
      {time !== 'custom' ? null : (
        <span class="span">
          <InstantField name="from" label="From" ms={filter.fromMs} />
          <InstantField name="to" label="To" ms={filter.toMs} />
        </span>
      )}
      <QueryText name="error" label="Text of the error" valid={filter.error} className="error" isSearch />
      <QueryText name="worker" label="Worker" valid={filter.worker} className="worker" maxLength={64} />
      {isFiltered(filter) ? (
        <Button
          kind="quiet"
          onPress={() => {
            setOpensCustom(false)
            setQuery(Object.fromEntries(PARAMETERS.map(name => [name, null])))
          }}
        >
          Clear filters
        </Button>
      ) : null}
    </>
  )
  return (
    <div class="filters">
      {isNarrow ? (
        // Rows of filters would push the list out of a small screen.
        <details open={isFiltered(filter)}>
          <summary>Filters</summary>
          <div class="filters">{fields}</div>
        </details>
      ) : (
        fields
      )}
      {children}
    </div>
  )
}

function Chip({ status, filter: { statuses } }: { readonly status: JobStatus; readonly filter: JobFilter }) {
  const isOn = statuses.includes(status)
  const [word, tone] = STATE_WORDS[status]
  const next = isOn ? statuses.filter(one => one !== status) : [...statuses, status]
  return (
    <button
      type="button"
      class="chip"
      aria-pressed={isOn}
      onClick={() => setQuery({ status: next.length === STATUSES.length ? null : next.join(',') })}
    >
      <State tone={tone}>{word}</State>
    </button>
  )
}

function InstantField({
  name,
  label,
  ms,
}: {
  readonly name: 'from' | 'to'
  readonly label: string
  readonly ms: number | null
}) {
  return (
    <label>
      {label}{' '}
      <input
        type="datetime-local"
        value={localInput(ms)}
        onChange={event => setQuery({ [name]: readLocalInput(event.currentTarget.value) })}
      />
    </label>
  )
}
