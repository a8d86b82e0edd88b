/** What the public API has and Runyard has not: why, by path. */

const NO_PODS = 'Runyard runs serverless endpoints, and has no pods'

const REASONS: readonly (readonly [path: RegExp, reason: string])[] = [
  [/^\/v[12]\/pods(\/|$)/, NO_PODS],
  [/^\/v2\/clusters(\/|$)/, 'Runyard runs serverless endpoints, and has no clusters'],
  [/^\/v2\/sandboxes(\/|$)/, 'Runyard runs serverless endpoints, and has no sandboxes'],
  [/^\/v2\/flash(\/|$)/, 'Runyard runs serverless endpoints, and has no flash apps'],
  [/^\/v2\/global-volumes(\/|$)/, 'Runyard has network volumes, and no global ones'],
  [
    /^\/v2\/registries\/delegations(\/|$)/,
    'Runyard takes a user name and a password for a registry, and no delegation',
  ],
  [/^\/v2\/serverless\/[^/]+\/builds(\/|$)/, 'Runyard runs images, and builds none'],
]

/** Why there is nothing at a path of the public API, as a sentence; null for any other path. */
export function absenceAt(path: string): string | null {
  return REASONS.find(([pattern]) => pattern.test(path))?.[1] ?? null
}
