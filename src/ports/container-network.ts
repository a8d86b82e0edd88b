import type { EngineFacts } from '../core/workers/container-reach.ts'

/** The network of this installation's containers, as it is now. */
export interface WorkerNetwork extends EngineFacts {
  readonly id: string
  readonly name: string
  /** Its IPv4 ranges, as `172.18.0.0/16`. */
  readonly subnets: readonly string[]
  /** True where containers in it are isolated from each other. */
  readonly isolated: boolean
}

/** An address range that a network had. */
export interface AddressRange {
  readonly subnet: string
  readonly gateway: string
}

/** The network of this installation's containers. */
export interface ContainerNetwork {
  /**
   * Finds the network, and creates the installation's own where it is missing.
   * @param wanted range for a new network, if it is free; null for any
   * @throws AppError `unavailable` with the reason, when there is no engine or no network
   */
  ensure(wanted: AddressRange | null): Promise<WorkerNetwork>
  /** Removes the installation's own network unless containers are in it; true when none is left. */
  remove(): Promise<boolean>
}
