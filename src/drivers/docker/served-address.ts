/** The address of a container that serves by itself, from the report of its engine. */
import type { ServedAt, SocketAddress } from '../../core/workers/socket-address.ts'
import { LABELS } from './container-spec.ts'
import type { InspectedContainer } from './inspected-container.ts'

/**
 * The address of a running container: a port of this machine's loopback address where its ports are published, its own otherwise.
 * Null when it does not serve, or the engine does not say where.
 */
export function servedAddress({ Config, NetworkSettings }: InspectedContainer): ServedAt | null {
  const [port, healthPort] = (Config?.Labels?.[LABELS.serves] ?? '').split(',').map(Number)
  if (!port || !healthPort) return null
  const own = Object.values(NetworkSettings?.Networks ?? {}).find(({ IPAddress }) => IPAddress)?.IPAddress
  const addressOf = (wanted: number): SocketAddress | null => {
    const published = NetworkSettings?.Ports?.[`${wanted}/tcp`]?.find(({ HostPort }) => Number(HostPort) > 0)
    if (published !== undefined) return { host: '127.0.0.1', port: Number(published.HostPort) }
    return own === undefined ? null : { host: own, port: wanted }
  }
  const [traffic, health] = [addressOf(port), addressOf(healthPort)]
  return traffic === null || health === null ? null : { traffic, health }
}
