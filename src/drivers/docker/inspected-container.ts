/** Descriptions of containers by an engine. */
import type { ServedAt, SocketAddress } from '../../core/workers/socket-address.ts'
import { LABELS } from './container-spec.ts'

export interface InspectedContainer {
  readonly Id: string
  readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null }
  readonly HostConfig?: {
    readonly Memory?: number
    readonly NanoCpus?: number
    readonly PidsLimit?: number | null
    readonly StorageOpt?: Readonly<Record<string, string>> | null
    readonly NetworkMode?: string
  }
  readonly NetworkSettings?: {
    readonly Ports?: Readonly<Record<string, readonly { readonly HostPort?: string }[] | null>> | null
    readonly Networks?: Readonly<Record<string, { readonly IPAddress?: string }>> | null
  }
  readonly State: {
    /** Docker counts paused ones, Podman does not. */
    readonly Running: boolean
    readonly Paused?: boolean
    readonly Pid?: number
    readonly ExitCode?: number
    readonly OOMKilled?: boolean
    readonly Error?: string
  }
}

/** True for a container that has begun and not ended, such as a paused one. */
export function hasNotEnded({ State: { Running, Paused } }: Pick<InspectedContainer, 'State'>): boolean {
  return Running || Paused === true
}

/**
 * The address of a running container: a port of this machine's loopback address where its ports are published, its own
 * otherwise. Null when it does not serve, or the engine does not report its address.
 */
export function servedAddress({ Config, NetworkSettings }: InspectedContainer): ServedAt | null {
  const [port, healthPort] = (Config?.Labels?.[LABELS.serves] ?? '').split(',').map(Number)
  if (!port || !healthPort) return null
  const ownAddress = Object.values(NetworkSettings?.Networks ?? {}).find(({ IPAddress }) => IPAddress)?.IPAddress
  const findAddress = (containerPort: number): SocketAddress | null => {
    const published = NetworkSettings?.Ports?.[`${containerPort}/tcp`]?.find(({ HostPort }) => Number(HostPort) > 0)
    if (published !== undefined) return { host: '127.0.0.1', port: Number(published.HostPort) }
    return ownAddress === undefined ? null : { host: ownAddress, port: containerPort }
  }
  const [traffic, health] = [findAddress(port), findAddress(healthPort)]
  return traffic === null || health === null ? null : { traffic, health }
}
