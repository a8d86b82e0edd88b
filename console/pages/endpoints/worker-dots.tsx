/** Workers by state, as shapes that can be counted at a glance. */
import type { EndpointOverview } from '../../client/api-types.d.ts'
import { plural } from '../../format.ts'

const STATES = [
  ['running', 'busy', '▶', 'running'],
  ['idle', 'good', '●', 'idle'],
  ['frozen', 'frozen', '❄', 'frozen'],
  ['initializing', 'wait', '◔', 'starting'],
  ['throttled', 'wait', '◆', 'waiting for a place'],
  ['unhealthy', 'bad', '✕', 'unhealthy'],
] as const

/** Limit of shapes of one state; more are a number. */
const MAX_SHAPES = 6

/** The workers of an endpoint. */
export function WorkerDots({ workers, max }: { readonly workers: EndpointOverview['workers']; readonly max: number }) {
  const words = STATES.flatMap(([state, , , word]) => (workers[state] > 0 ? [`${workers[state]} ${word}`] : []))
  const label =
    words.length === 0 ? `no worker, at most ${max}` : `${words.join(', ')}; at most ${plural(max, 'worker')}`
  return (
    <span class="dots" role="img" aria-label={label} title={label}>
      {STATES.map(([state, tone, shape]) => {
        const number = workers[state]
        if (number === 0) return null
        return (
          <span key={state} class={`state ${tone}`}>
            <span>{number <= MAX_SHAPES ? shape.repeat(number) : `${shape}${number}`}</span>
          </span>
        )
      })}
      <span class="faint">
        {words.length === 0 ? '0' : ''}/{max}
      </span>
    </span>
  )
}
