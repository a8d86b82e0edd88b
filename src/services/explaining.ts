import type { Endpoint } from '../core/endpoint.ts'
import { notFound } from '../core/errors.ts'
import { type ExplainContext, type Explanation, explainEndpoint, explainJob } from '../core/explain.ts'
import type { EndpointId, JobId, OwnerId, WorkerId } from '../core/ids.ts'
import type { Job } from '../core/job.ts'
import { PLACE_RULES, type PlaceRules } from '../core/place-input.ts'
import { withoutGpus } from '../core/place-room.ts'
import type { EndpointSnapshot } from '../core/scale.ts'
import type { Ports } from '../ports/ports.ts'
import type { Balancing } from './balancing.ts'
import type { Fleet } from './fleet.ts'

/** An endpoint with why its jobs wait. */
export interface EndpointExplanation {
  readonly endpoint: Endpoint
  readonly snapshot: EndpointSnapshot
  readonly explanation: Explanation
}

/** Answers why something waits, from what the store, the driver and the workers' output say. */
export class Explaining {
  readonly #ports: Pick<Ports, 'store' | 'driver' | 'clock' | 'machine'>
  readonly #fleet: Fleet
  readonly #balancing: Balancing
  readonly #placing: Partial<PlaceRules>

  /** @param placing how workers share the machine; what is left out is as core/place says */
  constructor(
    ports: Pick<Ports, 'store' | 'driver' | 'clock' | 'machine'>,
    parts: { readonly fleet: Fleet; readonly balancing: Balancing },
    placing: Partial<PlaceRules> = {},
  ) {
    this.#ports = ports
    this.#fleet = parts.fleet
    this.#balancing = parts.balancing
    this.#placing = placing
  }

  /** @throws AppError `not_found` */
  async endpoint(id: EndpointId): Promise<EndpointExplanation> {
    const { snapshot, context } = await this.#look(id)
    return { endpoint: snapshot.endpoint, snapshot, explanation: explainEndpoint(snapshot, context) }
  }

  /** As {@link endpoint}, of a picture that somebody has taken. */
  async of(snapshot: EndpointSnapshot): Promise<Explanation> {
    return explainEndpoint(snapshot, await this.#around(snapshot))
  }

  /** @throws AppError `not_found` */
  async job(endpointId: EndpointId, jobId: JobId): Promise<{ job: Job; explanation: Explanation }> {
    const { snapshot, context } = await this.#look(endpointId)
    const job = await this.#ports.store.jobs.find(endpointId, jobId, context.nowMs)
    if (job === null) throw notFound('job', jobId)
    const batch = job.batchId === null ? null : await this.#ports.store.batches.before(jobId)
    return { job, explanation: explainJob(job, snapshot, context, batch) }
  }

  /** All endpoints of an owner, each with its explanation. */
  async all(owner: OwnerId): Promise<EndpointExplanation[]> {
    const endpoints = await this.#ports.store.endpoints.list(owner)
    return Promise.all(endpoints.map(endpoint => this.endpoint(endpoint.id)))
  }

  async #look(id: EndpointId): Promise<{ snapshot: EndpointSnapshot; context: ExplainContext }> {
    const snapshot = await this.#balancing.snapshot(id)
    if (snapshot === null) throw notFound('endpoint', id)
    return { snapshot, context: await this.#around(snapshot) }
  }

  async #around({ endpoint }: EndpointSnapshot): Promise<ExplainContext> {
    const { driver, clock, machine } = this.#ports
    const rules = { ...PLACE_RULES, ...this.#placing }
    const noGpus = endpoint.compute.kind === 'gpu' && withoutGpus({ parts: await machine.parts(), rules })
    const startProblem = await this.#fleet.startProblem(endpoint)
    const pullPercent = (worker: WorkerId) => this.#fleet.pullPercent(worker)
    return { capacity: await driver.capacity(), startProblem, nowMs: clock.now(), pullPercent, noGpus }
  }
}
