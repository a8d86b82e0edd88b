/**
 * Whether a client has the content with this tag already (RFC 9110, 13.1.2). The comparison is weak: a content that was sent compressed has a
 * weak tag.
 * @param etag as in the header `ETag`, weak or strong
 */
export function isKnownTag(etag: string, { headers }: Pick<Request, 'headers'>): boolean {
  const known = headers.get('if-none-match')?.split(',') ?? []
  return known.some(one => opaque(one.trim()) === opaque(etag))
}

function opaque(etag: string): string {
  return etag.replace(/^W\//, '')
}
