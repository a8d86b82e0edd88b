import { jobsUrl } from '../api/addresses.ts'
import type { EndpointId } from '../core/ids.ts'
import { Gateway } from '../gateway/gateway.ts'
import { Forwarder } from '../gateway/proxy/forwarder.ts'
import { RequestQueues } from '../gateway/queue/request-queues.ts'
import type { Ports } from '../ports/ports.ts'
import type { Targets, Traffic } from '../ports/targets.ts'
import { Balancing } from '../services/balancing/balancing.ts'
import { canResume } from '../services/balancing/can-resume.ts'
import type { AccountServices } from './account-services.ts'
import type { AppConfig, LateAddresses, Stopping } from './config.ts'

/** Requests for load-balancing endpoints: their queues, their way to workers, and the health of those workers. */
export interface BalancingServices {
  readonly requestQueues: RequestQueues
  readonly balancing: Balancing
  readonly gateway: Gateway
  /** Ends whatever still passes to workers. */
  close(): void
}

/** @param requests where requests are counted, and who has to know of workers; the request queues unless given */
export function createBalancingServices(
  ports: Ports,
  config: AppConfig,
  { access }: AccountServices,
  { stopping }: Stopping,
  addresses: LateAddresses,
  requests?: Targets & Traffic,
): BalancingServices {
  const { clock, store } = ports
  const requestQueues = new RequestQueues(ports, {
    limits: config.requestQueueLimits ?? {},
    canResume: (endpointId, workerId) => canResume(store, endpointId, workerId),
  })
  const balancing = new Balancing(ports, requests ?? requestQueues, config.startAware ?? false)
  const nextTurn = (callback: () => void) => void clock.after(0, callback)
  const forwarder = new Forwarder(
    { clock, reservations: requestQueues, nextTurn },
    { bodyBytes: config.balancedBodyBytes },
  )
  const rules = config.admission === undefined ? {} : { rules: config.admission }
  const queueAddressOf = (id: EndpointId) => jobsUrl(addresses.current(), id)
  const passing = { access, forwarding: forwarder, traffic: requestQueues, stopping, queueAddressOf }
  const gateway = new Gateway(ports, { ...passing, ...rules })
  return {
    requestQueues,
    balancing,
    gateway,
    close() {
      requestQueues.close()
      gateway.close()
      forwarder.close()
      balancing.close()
    },
  }
}
