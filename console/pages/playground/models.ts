/** The models that the key of the session may call. */
import { request } from '../../client/api.ts'

/** A model, and how long a first answer may take. */
export interface Model {
  /** Name in a request. */
  readonly name: string
  readonly endpointId: string
  readonly state: string
  /** Median of the times of its starts, in seconds; null before the first. */
  readonly startS: number | null
}

/** The models of the list, those of one endpoint after it. */
export async function readModels(signal: AbortSignal): Promise<readonly Model[]> {
  const response = await request('GET', '/openai/v1/models', { signal })
  return modelsFromList(await response.json())
}

interface ModelList {
  readonly data?: readonly {
    readonly id: string
    readonly runyard?: {
      readonly endpoint_id: string
      readonly state: string
      readonly typical_start_seconds: number | null
    }
  }[]
}

/** The models of a list in OpenAI's form. */
export function modelsFromList(list: unknown): readonly Model[] {
  const { data = [] } = list as ModelList
  return data.flatMap(({ id, runyard }) => {
    if (runyard === undefined) return []
    const { endpoint_id: endpointId, state, typical_start_seconds: startS } = runyard
    return [{ name: id, endpointId, state, startS }]
  })
}

const WORDS: Readonly<Record<string, string>> = {
  ready: 'ready',
  sleeping: 'sleeps, wakes soon',
  starting: 'starts',
  cold: 'cold',
  paused: 'paused',
}

/** The state of a model in words, with the time of a start where one is needed. */
export function stateWords({ state, startS }: Pick<Model, 'state' | 'startS'>): string {
  const word = Object.hasOwn(WORDS, state) ? WORDS[state]! : state
  return state === 'cold' && startS !== null ? `${word}, starts in about ${Math.max(1, Math.round(startS))} s` : word
}
