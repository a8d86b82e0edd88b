/** The first match wins: `updateEndpointTemplate` and `rotateEndpointKey` are both about an endpoint. */
const KINDS: readonly [kind: AuditedKind, words: RegExp][] = [
  ['app', /flashApp|prepareFlashArtifact|^(?:create|delete)App$/i],
  ['environment', /environment/i],
  ['build', /artifact|flashBuild/i],
  ['alias', /modelAlias/i],
  ['registry', /registr/i],
  ['secret', /secret/i],
  ['volume', /volume/i],
  ['worker', /worker/i],
  ['endpoint', /endpoint|release/i],
  ['template', /template/i],
  ['account', /account|userSettings|sshKeys/i],
  ['key', /key/i],
  ['task', /pod/i],
]

/** Kinds of objects of management operations. */
export type AuditedKind =
  | ('endpoint' | 'template' | 'secret' | 'registry' | 'volume' | 'key' | 'account' | 'worker')
  | ('app' | 'environment' | 'build' | 'task' | 'alias')

/**
 * The kind of object that an operation changes, from its name: an operation of REST, a mutation, or method and
 * path of version 1.
 * @returns null if the name contains no kind
 */
export function findObjectKind(operation: string): AuditedKind | null {
  return KINDS.find(([, words]) => words.test(operation))?.[0] ?? null
}
