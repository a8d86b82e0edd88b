import {
  MAX_PAGE,
  type Page,
  type PagePosition,
  type PageRequest,
  pageFromRows,
  readSlice,
  type Slice,
} from '../core/pages.ts'

/**
 * One page of a list that the store gives in slices.
 * @param most maximum number of items of a page
 * @throws AppError `invalid` for a cursor that no page had, or a limit out of bounds
 */
export async function onePage<Item extends PagePosition>(
  request: PageRequest,
  read: (slice: Slice) => Promise<Item[]>,
  most = MAX_PAGE,
): Promise<Page<Item>> {
  const slice = readSlice(request, most)
  return pageFromRows(await read(slice), slice)
}
