import { MAX_PAGE, type Page, type PageRequest, type Position, pageOf, type Slice, sliceOf } from '../core/pages.ts'

/**
 * One page of a list that the store gives in slices.
 * @param most maximum number of items of a page
 * @throws AppError `invalid` for a cursor that no page had, or a limit out of bounds
 */
export async function onePage<Item extends Position>(
  request: PageRequest,
  read: (slice: Slice) => Promise<Item[]>,
  most = MAX_PAGE,
): Promise<Page<Item>> {
  const slice = sliceOf(request, most)
  return pageOf(await read(slice), slice)
}
