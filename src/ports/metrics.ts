import type { EndpointId } from '../core/ids.ts'
import type { CardRoom } from '../core/placement/card-room.ts'
import type { EndpointLoad } from '../core/scaling/scale.ts'

/** All metrics as Prometheus reads them. */
export interface Exposition {
  readonly contentType: string
  readonly text: string
}

/** Present load of one load-balancing endpoint in the gateway. */
export interface GatewayLoad {
  /** Requests that were admitted and have not ended, including those that wait. */
  readonly requests: number
  /** The same for WebSockets and other upgraded connections. */
  readonly sockets: number
  /** Those of both that wait for a worker. */
  readonly waiting: number
  /** Workers with some of these requests or sockets; the store has no record of this. */
  readonly busyWorkers: number
}

/** The measured memory of a GPU of the machine, in MiB. */
export interface MeasuredGpu extends Pick<CardRoom, 'totalMb' | 'freeMb' | 'foreignMb'> {
  /** Index on the machine. */
  readonly index: number
}

/** Counts events, and shows the counts together with the present state. */
export interface Metrics {
  /**
   * @param loads the present state of all endpoints; null when it could not be read, which
   * shows as `runyard_store_up 0`
   * @param gatewayLoad reads the load of an endpoint in the gateway
   * @param gpus the GPUs whose memory is measured; none when left out
   */
  expose(
    loads: readonly EndpointLoad[] | null,
    gatewayLoad: (id: EndpointId) => GatewayLoad,
    gpus?: readonly MeasuredGpu[],
  ): Promise<Exposition>
}
