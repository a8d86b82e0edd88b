/** Words of the rotation of a key. */

/** Times for which the old key goes on, in seconds, with titles. */
export const OVERLAPS = [
  ['0', 'ends at once'],
  ['3600', 'works for an hour'],
  ['86400', 'works for a day'],
  ['604800', 'works for a week'],
] as const

/** A new key as the server shows it once. */
export interface MadeKey {
  readonly key: string
  readonly s3: { readonly accessKeyId: string; readonly secretAccessKey: string } | null
}

/** The secrets of a new key besides itself: what each is, and its text. */
export function secretsBeside({ s3 }: Pick<MadeKey, 's3'>): readonly (readonly [string, string])[] {
  if (s3 === null) return []
  return [
    ['S3 access key', s3.accessKeyId],
    ['S3 secret key', s3.secretAccessKey],
  ]
}
