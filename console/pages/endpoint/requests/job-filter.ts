/** The filter of the jobs of an endpoint, from the address of the page. */
import type { JobStatus } from '../../../client/api-types.d.ts'

/** All states, in the order of a job's life. */
export const STATUSES: readonly JobStatus[] = [
  'IN_QUEUE',
  'IN_PROGRESS',
  'COMPLETED',
  'FAILED',
  'TIMED_OUT',
  'CANCELLED',
]

/** States to which an action on many jobs applies. */
export const STATUSES_OF = {
  cancel: ['IN_QUEUE', 'IN_PROGRESS'],
  retry: ['FAILED', 'TIMED_OUT'],
} as const satisfies Record<string, readonly JobStatus[]>

/** Spans of time up to now, by their names in the address. */
const SPANS = { '15m': 15 * 60_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 7 * 86_400_000 } as const
/** A name of {@link SPANS}. */
export type Span = keyof typeof SPANS

/** A filter. Null and empty mean all. */
export interface JobFilter {
  readonly statuses: readonly JobStatus[]
  /** A span up to now; `from` and `to` do not count beside it. */
  readonly span: Span | null
  /** Instants in milliseconds. */
  readonly fromMs: number | null
  readonly toMs: number | null
  readonly worker: string | null
  readonly error: string | null
  readonly fingerprint: string | null
}

/** The parameters of the address that make a filter. */
export const PARAMETERS = ['status', 'span', 'from', 'to', 'worker', 'error', 'fingerprint'] as const

/** Reads the filter of an address. Invalid parameters are ignored. */
export function filterFromQuery(query: URLSearchParams): JobFilter {
  const names = (query.get('status') ?? '').split(',')
  const span = query.get('span')
  const text = (name: string) => query.get(name)?.trim() || null
  return {
    statuses: STATUSES.filter(status => names.includes(status)),
    span: span !== null && Object.hasOwn(SPANS, span) ? (span as Span) : null,
    fromMs: readInstant(query.get('from')),
    toMs: readInstant(query.get('to')),
    worker: text('worker'),
    error: text('error')?.slice(0, 200) ?? null,
    fingerprint: text('fingerprint'),
  }
}

function readInstant(text: string | null): number | null {
  const ms = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

/** A filter as `GET requests` and the actions of many jobs take it. */
export interface JobQuery {
  readonly status?: string
  readonly worker?: string
  readonly error?: string
  readonly fingerprint?: string
  readonly from?: string
  readonly to?: string
}

/** The parameters of a request to the server. @param nowMs end of the span */
export function jobQuery(filter: JobFilter, nowMs: number): JobQuery {
  const { statuses, span, worker, error, fingerprint } = filter
  const fromMs = span === null ? filter.fromMs : nowMs - SPANS[span]
  const toMs = span === null ? filter.toMs : null
  return {
    ...(statuses.length === 0 ? {} : { status: statuses.join(',') }),
    ...(worker === null ? {} : { worker }),
    ...(error === null ? {} : { error }),
    ...(fingerprint === null ? {} : { fingerprint }),
    ...(fromMs === null ? {} : { from: new Date(fromMs).toISOString() }),
    ...(toMs === null ? {} : { to: new Date(toMs).toISOString() }),
  }
}

/** The parameters of an action on many jobs: of its states only; null if the filter has none of them. */
export function actionQuery(filter: JobFilter, action: keyof typeof STATUSES_OF, nowMs: number): JobQuery | null {
  const may: readonly JobStatus[] = STATUSES_OF[action]
  const statuses = filter.statuses.length === 0 ? may : may.filter(status => filter.statuses.includes(status))
  return statuses.length === 0 ? null : jobQuery({ ...filter, statuses }, nowMs)
}

/** True if a job in a state can pass a filter; only failed ones have an error. */
export function mayHave({ statuses, error, fingerprint }: JobFilter, status: JobStatus): boolean {
  if (statuses.length > 0 && !statuses.includes(status)) return false
  return (error === null && fingerprint === null) || (STATUSES_OF.retry as readonly JobStatus[]).includes(status)
}

/** True if the filter hides any job. */
export function isFiltered(filter: JobFilter): boolean {
  return Object.keys(jobQuery(filter, 0)).length > 0
}

/** The value of a field for a local date and time. */
export function localInput(ms: number | null): string {
  if (ms === null) return ''
  const date = new Date(ms)
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The instant of such a field for the address; null if it is empty. */
export function readLocalInput(text: string): string | null {
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? null : new Date(ms).toISOString()
}
