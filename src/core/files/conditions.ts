import { FileError } from './file-error.ts'

/** The state that conditions compare: the entity tag with its quotes, and the time of the last change. */
export interface FileState {
  readonly tag: string
  readonly modifiedMs: number
}

/** The conditions of a request, as its headers have them; null without one. */
export interface Conditions {
  readonly ifMatch: string | null
  readonly ifNoneMatch: string | null
  readonly ifModifiedSince: string | null
  readonly ifUnmodifiedSince: string | null
}

/** Reads the conditions. @param header gives a header by its name */
export function readConditions(header: (name: string) => string | null): Conditions {
  return {
    ifMatch: header('if-match'),
    ifNoneMatch: header('if-none-match'),
    ifModifiedSince: header('if-modified-since'),
    ifUnmodifiedSince: header('if-unmodified-since'),
  }
}

/**
 * The refusal of a reading request, in the order of RFC 9110, 13.2.2: `PreconditionFailed` or `NotModified`; null for
 * none.
 */
export function readingProblem(conditions: Conditions, { tag, modifiedMs }: FileState): FileError | null {
  const { ifMatch, ifNoneMatch, ifModifiedSince, ifUnmodifiedSince } = conditions
  // HTTP dates have no fractions of a second.
  const changedMs = Math.floor(modifiedMs / 1_000) * 1_000
  const failed = new FileError('PreconditionFailed')
  if (ifMatch !== null) {
    if (!matches(ifMatch, tag)) return failed
  } else if (ifUnmodifiedSince !== null && changedMs > Date.parse(ifUnmodifiedSince)) return failed
  if (ifNoneMatch !== null) return matches(ifNoneMatch, tag) ? new FileError('NotModified') : null
  return ifModifiedSince !== null && changedMs <= Date.parse(ifModifiedSince) ? new FileError('NotModified') : null
}

/**
 * The condition of a write: the tag that the file must still have, `absent` for a key without a file; null for none.
 * @throws FileError `NotImplemented` for conditions that only a reading request can have
 */
export function writingCondition({ ifMatch, ifNoneMatch }: Conditions): WritingCondition {
  if (ifNoneMatch !== null && ifNoneMatch.trim() !== '*') {
    throw new FileError('NotImplemented', 'If-None-Match of a write can only be *')
  }
  if (ifNoneMatch !== null) return 'absent'
  return ifMatch === null ? null : { tags: ifMatch }
}

/** See {@link writingCondition}. */
export type WritingCondition = 'absent' | { readonly tags: string } | null

/** True if a list of tags, or `*`, has this one. Tags without quotes are as good. */
export function matches(list: string, tag: string): boolean {
  if (list.trim() === '*') return true
  const wanted = tag.replaceAll('"', '')
  return list.split(',').some(one => one.trim().replace(/^W\//, '').replaceAll('"', '') === wanted)
}

/** First and last byte of a part of a file. */
export interface ByteRange {
  readonly first: number
  readonly last: number
}

/**
 * The part that a Range header asks for; null for the whole file, as for several parts and other forms.
 * @throws FileError `InvalidRange` if the file has none of it
 */
export function readRange(text: string | null, bytes: number): ByteRange | null {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec((text ?? '').trim())
  const [, from = '', to = ''] = match ?? []
  if (from === '' && to === '') return null
  if (from === '') {
    if (Number(to) === 0 || bytes === 0) throw new FileError('InvalidRange')
    return { first: Math.max(0, bytes - Number(to)), last: bytes - 1 }
  }
  const first = Number(from)
  if (to !== '' && Number(to) < first) return null
  if (first >= bytes) throw new FileError('InvalidRange')
  return { first, last: to === '' ? bytes - 1 : Math.min(Number(to), bytes - 1) }
}
