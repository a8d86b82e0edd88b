/**
 * True if a client already has the content with this tag (RFC 9110, 13.1.2). The comparison is weak: compressed
 * content has a weak tag.
 * @param etag as in the header `ETag`, weak or strong
 */
export function isCachedTag(etag: string, { headers }: Pick<Request, 'headers'>): boolean {
  const known = headers.get('if-none-match')?.split(',') ?? []
  return known.some(one => withoutWeakMark(one.trim()) === withoutWeakMark(etag))
}

function withoutWeakMark(etag: string): string {
  return etag.replace(/^W\//, '')
}
