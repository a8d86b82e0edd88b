/** Words of the rotation of a key. */

/** Times for which the old key goes on, in seconds, with titles. */
export const OVERLAPS = [
  ['0', 'ends at once'],
  ['3600', 'works for an hour'],
  ['86400', 'works for a day'],
  ['604800', 'works for a week'],
] as const

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
