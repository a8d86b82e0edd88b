import type { OwnerId } from '../core/ids.ts'
import type { Slice } from '../core/pages.ts'
import type { Ports } from '../ports/ports.ts'
import type { ListedEndpoint, ListedKind } from '../ports/store/store.ts'

/** Endpoints of one read: a thousand with all of their facts take a long time, in which nobody else is answered. */
const PART = 100

/**
 * A slice of an owner's endpoints with their facts, read in parts.
 * @throws AppError `unavailable`
 */
export async function listedInParts(
  { store }: Pick<Ports, 'store'>,
  owner: OwnerId,
  { after, limit }: Slice,
  kind?: ListedKind,
): Promise<ListedEndpoint[]> {
  const listed: ListedEndpoint[] = []
  for (let place = after; listed.length < limit; ) {
    const most = Math.min(PART, limit - listed.length)
    const part = await store.endpoints.listed(owner, { after: place, limit: most }, kind)
    listed.push(...part)
    if (part.length < most) break
    place = part.at(-1)!.snapshot.endpoint
  }
  return listed
}
