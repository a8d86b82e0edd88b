/** A line as segments of one look each. */
import type { Style } from './ansi.ts'

/** A segment of a line. */
export interface Segment {
  readonly text: string
  readonly classes: string
  /** True for a match of the search. */
  readonly isMatch: boolean
}

/** Cuts a text where its colors or the matches begin or end. Both lists are in order. */
export function splitSegments(
  text: string,
  styles: readonly Style[],
  ranges: readonly { readonly from: number; readonly to: number }[],
): Segment[] {
  const cuts = [0, text.length, ...[...styles, ...ranges].flatMap(({ from, to }) => [from, to])]
  const places = [...new Set(cuts)].filter(place => place <= text.length).sort((a, b) => a - b)
  const segments: Segment[] = []
  let style = 0
  let match = 0
  for (const [at, from] of places.slice(0, -1).entries()) {
    while (style < styles.length && styles[style]!.to <= from) style += 1
    while (match < ranges.length && ranges[match]!.to <= from) match += 1
    segments.push({
      text: text.slice(from, places[at + 1]),
      classes: (styles[style]?.from ?? Number.POSITIVE_INFINITY) <= from ? styles[style]!.classes : '',
      isMatch: (ranges[match]?.from ?? Number.POSITIVE_INFINITY) <= from,
    })
  }
  return segments
}
