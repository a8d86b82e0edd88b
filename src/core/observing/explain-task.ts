import type { EndpointSnapshot } from '../scaling/scale.ts'
import { exitText } from '../workers/worker.ts'
import { type Explanation, plain } from './explanation.ts'

/** The explanation of a task that has ended, which nothing starts again. */
export function overTask({ endpoint, workers, exits }: EndpointSnapshot): Explanation {
  const last = exits[0]
  const how = last?.exit == null ? '' : `: its worker ${exitText(last, last.exit)}`
  return plain('finished', `the task ${endpoint.name} ${workers.length > 0 ? 'ends' : 'has ended'}${how}`)
}
