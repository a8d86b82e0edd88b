/**
 * True if a client already has the content with this tag (RFC 9110, 13.1.2). The comparison is weak: compressed
 * content has a weak tag.
 * @param etag as in the header `ETag`, weak or strong
 */
export function isKnownTag(etag: string, { headers }: Pick<Request, 'headers'>): boolean {
  const known = headers.get('if-none-match')?.split(',') ?? []
  return known.some(one => opaque(one.trim()) === opaque(etag))
}

function opaque(etag: string): string {
  return etag.replace(/^W\//, '')
}
