/** Paths of the public API that Runyard lacks, each with the reason. */

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

/** The reason, as a sentence, for which a path of the public API does not exist here; null for any other path. */
export function absenceAt(path: string): string | null {
  return REASONS.find(([pattern]) => pattern.test(path))?.[1] ?? null
}
