import type { EndpointLoad } from '../core/scale.ts'

/** All metrics as Prometheus reads them. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

/** Counts what the event stream tells, and shows it together with the present state. */
export interface Metrics {
  /** @param loads the present state of all endpoints; null when it could not be read, which shows as `runyard_store_up 0` */
  expose(loads: readonly EndpointLoad[] | null): Promise<Exposition>
}
