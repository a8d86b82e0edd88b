/** Images that an account may run: those of registries that it may make the engine call. */
import { parseReference } from '../../core/endpoints/image-reference.ts'
import { DEFAULT_OWNER, type OwnerId } from '../../core/ids.ts'
import type { StartFailure } from '../../core/workers/start-failure.ts'
import type { Ports } from '../../ports/ports.ts'
import { isOnMachine } from './host-folders.ts'

/** Reason why an account may not run an image, by the name of its registry; null when it may. */
export function imageRefusal(ports: Ports, owner: OwnerId, image: string): StartFailure | null {
  const host = foreignRegistry(ports, owner, image)
  return host === null || ports.registries.isAllowed(host) ? null : { kind: 'registry_private', image, host }
}

/**
 * Check before each download of an image that the engine may call its registry: the name may have another address by
 * then.
 * @returns undefined for an account whose images may come from anywhere
 */
export function downloadGuard(
  ports: Ports,
  owner: OwnerId,
  image: string,
): (() => Promise<StartFailure | null>) | undefined {
  const host = foreignRegistry(ports, owner, image)
  if (host === null) return undefined
  return async () => {
    const reach = await ports.registries.reach(host)
    if (reach === 'allowed') return null
    return reach === 'refused'
      ? { kind: 'registry_private', image, host }
      : { kind: 'pull_failed', image, host, why: 'unreachable', said: '' }
  }
}

/**
 * The registry of an image of an account other than the operator's; null for all others, and for a text that is no
 * reference.
 */
function foreignRegistry(ports: Ports, owner: OwnerId, image: string): string | null {
  if (owner === DEFAULT_OWNER || isOnMachine(ports, image)) return null
  return parseReference(image)?.registry ?? null
}
