/** Settings that a person tries, as the texts of their fields. */
import type { Endpoint, Operations, UpdateEndpointRequest } from '../../../client/api-types.d.ts'
import type { Change } from '../../../parts/actions.ts'

type Query = Operations['GET /v2/serverless/{id}/whatif']['query']

/** The fields of the form, by their names in the query. */
export interface Draft {
  readonly workersMin: string
  readonly workersMax: string
  readonly idleTimeout: string
  readonly scalerType: Endpoint['scaling']['type']
  readonly scalerValue: string
  readonly flashBootType: Endpoint['flashboot']
}

/** The settings of an endpoint as they are. */
export function draftFromEndpoint({
  workers,
  scaling,
  flashboot,
}: Pick<Endpoint, 'workers' | 'scaling' | 'flashboot'>): Draft {
  return {
    workersMin: String(workers.min),
    workersMax: String(workers.max),
    idleTimeout: workers.idleTimeout === undefined ? '' : String(workers.idleTimeout),
    scalerType: scaling.type,
    scalerValue: String(scaling.type === 'QUEUE_DELAY' ? scaling.queueDelay : scaling.requestCount),
    flashBootType: flashboot,
  }
}

const NAMES: Readonly<Record<keyof Draft, string>> = {
  workersMin: 'Workers at least',
  workersMax: 'Workers at most',
  idleTimeout: 'Idle timeout, seconds',
  scalerType: 'Scaler',
  scalerValue: 'Value of the scaler',
  flashBootType: 'Flashboot',
}

function changed(today: Draft, draft: Draft): (keyof Draft)[] {
  return (Object.keys(NAMES) as (keyof Draft)[]).filter(name => today[name] !== draft[name])
}

/** The changed settings, for people. */
export function listChanges(today: Draft, draft: Draft): readonly Change[] {
  return changed(today, draft).map(name => ({ name: NAMES[name], from: today[name] || '–', to: draft[name] || '–' }))
}

/** The query of the what-if. A setting that is left out stays as it is today. */
export function queryFromDraft(today: Draft, draft: Draft): Query {
  const fields = new Set(changed(today, draft))
  // A value belongs to a type: without the type, the server takes the value for one of today's type.
  if (fields.has('scalerType')) fields.add('scalerValue')
  const query = Object.fromEntries([...fields].filter(name => draft[name] !== '').map(name => [name, draft[name]]))
  // The server parses the numbers from the text of the query.
  return query as unknown as Query
}

/** The change of the endpoint that makes a draft its settings. */
export function bodyFromDraft(today: Draft, draft: Draft): UpdateEndpointRequest {
  const fields = new Set(changed(today, draft))
  const value = Number(draft.scalerValue)
  const workers = {
    ...(fields.has('workersMin') ? { min: Number(draft.workersMin) } : {}),
    ...(fields.has('workersMax') ? { max: Number(draft.workersMax) } : {}),
    ...(fields.has('idleTimeout') && draft.idleTimeout !== '' ? { idleTimeout: Number(draft.idleTimeout) } : {}),
  }
  const isScaled = fields.has('scalerType') || fields.has('scalerValue')
  const scaling: Endpoint['scaling'] =
    draft.scalerType === 'QUEUE_DELAY'
      ? { type: 'QUEUE_DELAY', queueDelay: value }
      : { type: 'REQUEST_COUNT', requestCount: value }
  return {
    ...(Object.keys(workers).length > 0 ? { workers } : {}),
    ...(isScaled ? { scaling } : {}),
    ...(fields.has('flashBootType') ? { flashboot: draft.flashBootType } : {}),
  }
}
