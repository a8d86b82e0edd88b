import { type Page, type PageRequest, type Position, pageOf, type Slice, sliceOf } from '../core/page.ts'

/**
 * One page of a list that the store gives in slices.
 * @throws AppError `invalid` for a cursor that no page had, or a limit out of bounds
 */
export async function onePage<Item extends Position>(
  request: PageRequest,
  read: (slice: Slice) => Promise<Item[]>,
): Promise<Page<Item>> {
  const slice = sliceOf(request)
  return pageOf(await read(slice), slice)
}
