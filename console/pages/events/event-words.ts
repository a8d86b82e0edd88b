/** Events in words. */

/** An event that the server keeps. */
export interface KeptEvent {
  readonly id: string
  /** Such as `worker.moved`. */
  readonly type: string
  readonly at: string
  /** Null for an event of no single endpoint. */
  readonly endpointId: string | null
  readonly fields: Readonly<Record<string, unknown>>
}

/** The kinds of events: the beginnings of their names, with titles. */
export const KINDS: readonly (readonly [string, string])[] = [
  ['job', 'Jobs'],
  ['worker', 'Workers'],
  ['webhook', 'Webhooks'],
  ['endpoint', 'Endpoints'],
  ['rollout', 'Rollouts'],
  ['alert', 'Alerts'],
  ['change', 'Changes of other things'],
]

/** The object of an event: its id, and its address where it has one. */
export function eventObject({ endpointId, fields }: KeptEvent): { readonly id: string; readonly path: string | null } {
  const { jobId, workerId, object } = fields
  const of = endpointId === null ? null : `/endpoints/${encodeURIComponent(endpointId)}`
  if (typeof jobId === 'string') {
    return { id: jobId, path: of && `${of}/requests?job=${encodeURIComponent(jobId)}` }
  }
  if (typeof workerId === 'string') {
    return { id: workerId, path: of && `${of}/workers?worker=${encodeURIComponent(workerId)}` }
  }
  return { id: typeof object === 'string' ? object : '', path: null }
}

/** The rest of an event in one line, such as `IN_QUEUE → IN_PROGRESS, attempt 1`. */
export function eventDetails({ fields }: KeptEvent): string {
  const { jobId, workerId, object, from, to, ...rest } = fields
  const move = typeof to !== 'string' ? [] : [typeof from === 'string' ? `${from} → ${to}` : to]
  const worker = typeof jobId === 'string' && typeof workerId === 'string' ? [`worker ${workerId}`] : []
  const others = Object.entries(rest)
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
  return [...move, ...worker, ...others].join(', ')
}
