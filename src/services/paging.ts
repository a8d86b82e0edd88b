import {
  MAX_PAGE,
  type Page,
  type PagePosition,
  type PageRequest,
  pageFromRows,
  readSlice,
  type Slice,
} from '../core/pages.ts'

/** Items of one read: a thousand take a long time, in which nobody else is answered. */
const PART = 100

/**
 * A slice of a list that the store gives in slices, read in parts.
 * @param placeOf where the next part begins, behind an item
 */
export async function readInParts<Item>(
  { after, limit }: Slice,
  placeOf: (item: Item) => PagePosition,
  read: (slice: Slice) => Promise<readonly Item[]>,
): Promise<Item[]> {
  const items: Item[] = []
  for (let place = after; items.length < limit; ) {
    const most = Math.min(PART, limit - items.length)
    const part = await read({ after: place, limit: most })
    items.push(...part)
    if (part.length < most) break
    place = placeOf(part.at(-1)!)
  }
  return items
}

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
