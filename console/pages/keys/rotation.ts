/** Decisions of the rotation of a key. */

import type { Body } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { draftFromScope, scopeFromDraft } from './scope.ts'

/** Tells what of the things that a key names still exists: a new key cannot name others. */
export interface Existing {
  readonly endpoint: (id: string) => boolean
  readonly volume: (id: string) => boolean
}

/** The body that makes the key after an old one. Only the operator may give `exempt`. */
export function successor(of: ApiKey, exists: Existing): Body<'POST /v2/account/keys'> {
  const { name, expiresAt, exempt, limits, accounting } = of
  const draft = draftFromScope(of.scope)
  const byVolume = Object.fromEntries(Object.entries(draft.byVolume).filter(([id]) => exists.volume(id)))
  const scope = scopeFromDraft({ ...draft, byVolume }, exists.endpoint)
  // Without the member the new key has what the key of the session has to give.
  const marks = { ...(accounting ? { accounting } : {}), ...(exempt ? { exempt } : {}) }
  return { name, scope, expiresAt, limits, ...marks }
}

/** Times for which the old key goes on, in milliseconds, with titles. */
export const OVERLAPS = [
  ['0', 'ends at once'],
  ['3600000', 'works for an hour'],
  ['86400000', 'works for a day'],
  ['604800000', 'works for a week'],
] as const

/** Limit of characters of a name. */
const MAX_NAME = 191
const REPLACED = ' (replaced)'

/** The name of an old key beside its successor. */
export function replacedName(name: string): string {
  if (name.endsWith(REPLACED)) return name
  return `${name.slice(0, MAX_NAME - REPLACED.length)}${REPLACED}`
}

/** The end of an old key, never later than the one that it has. */
export function oldKeyEnd(expiresAt: string | null, endMs: number): string {
  const laterMs = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt)
  return new Date(Math.min(endMs, laterMs)).toISOString()
}

/** The secrets of a new key, which are shown once. */
export function createdText({
  key,
  s3,
}: {
  readonly key: string
  readonly s3: { readonly accessKeyId: string; readonly secretAccessKey: string } | null
}): string {
  return s3 === null ? key : `${key}\nS3 access key: ${s3.accessKeyId}\nS3 secret key: ${s3.secretAccessKey}`
}
