/** Addresses at which workers reach the server. */
export interface WorkerAddresses {
  /** Origin that new workers call. */
  readonly workerUrl: string
  /** Other origins under which workers reach this server. */
  readonly otherWorkerUrls?: readonly string[]
  /** The address for containers; without it they call `workerUrl`. */
  readonly containers?: ContainerUrls
  /** Variables by which functions of apps find this server; none when left out. */
  readonly appVariables?: AppVariables
}

/** Variables of workers of apps. */
export interface AppVariables {
  readonly addresses: Readonly<Record<string, string>>
  /** Variables that name files of this machine, for processes of it alone. */
  readonly files: Readonly<Record<string, string>>
}

/** The address for workers in containers. The server may have to open a listener for it first. */
export interface ContainerUrls {
  /** Origin for a new worker. @throws AppError with the reason when containers cannot reach the server now */
  url(): Promise<string>
  /** Origin under which running containers reach this server; null when they cannot. */
  readonly currentUrl: string | null
}

/**
 * Origin that a new worker calls.
 * @param isOnMachine true for a worker that is a process of this machine
 * @throws AppError with the reason when there is none now
 */
export async function urlFor({ workerUrl, containers }: WorkerAddresses, isOnMachine: boolean): Promise<string> {
  return containers === undefined || isOnMachine ? workerUrl : containers.url()
}

/** True when workers that were given this origin reach the server. */
export function isReached({ workerUrl, otherWorkerUrls = [], containers }: WorkerAddresses, url: string): boolean {
  return [workerUrl, ...otherWorkerUrls, containers?.currentUrl].includes(url)
}
