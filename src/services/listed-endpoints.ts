import type { OwnerId } from '../core/ids.ts'
import type { Slice } from '../core/pages.ts'
import type { Ports } from '../ports/ports.ts'
import type { ListedEndpoint, ListedKind } from '../ports/store/store.ts'
import { readInParts } from './paging.ts'

/**
 * A slice of an owner's endpoints with their facts, read in parts.
 * @throws AppError `unavailable`
 */
export function listedInParts(
  { store }: Pick<Ports, 'store'>,
  owner: OwnerId,
  slice: Slice,
  kind?: ListedKind,
): Promise<ListedEndpoint[]> {
  const read = (part: Slice) => store.endpoints.listed(owner, part, kind)
  return readInParts(slice, ({ snapshot }) => snapshot.endpoint, read)
}
