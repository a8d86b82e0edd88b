/** Cuts long texts into slices, so that one turn of the loop encodes a bounded part. */

/** Characters that are encoded in one turn. */
export const SLICE_CHARACTERS = 262_144

/**
 * The texts one after the other, in slices of at most {@link SLICE_CHARACTERS} and one; short texts share a slice.
 */
export function* gatherSlices(texts: Iterable<string>): Generator<string, void> {
  let gathered = ''
  for (const text of texts) {
    if (gathered.length + text.length > SLICE_CHARACTERS && gathered !== '') {
      yield gathered
      gathered = ''
    }
    let at = 0
    while (text.length - at > SLICE_CHARACTERS) {
      const end = sliceEnd(text, at)
      yield text.slice(at, end)
      at = end
    }
    gathered += text.slice(at)
  }
  if (gathered !== '') yield gathered
}

/** A surrogate pair is not cut. */
function sliceEnd(text: string, start: number): number {
  const end = start + SLICE_CHARACTERS
  const last = text.charCodeAt(end - 1)
  return last >= 0xd800 && last <= 0xdbff ? end + 1 : end
}
