/** In the order in which they are tried: `updateEndpointTemplate` is about an endpoint, `rotateEndpointKey` too. */
const KINDS: readonly [kind: AuditedKind, words: RegExp][] = [
  ['registry', /registr/i],
  ['secret', /secret/i],
  ['volume', /volume/i],
  ['worker', /worker/i],
  ['endpoint', /endpoint|release/i],
  ['template', /template/i],
  ['account', /account|userSettings|sshKeys/i],
  ['key', /key/i],
]

/** What operations of management are about. */
export type AuditedKind = 'endpoint' | 'template' | 'secret' | 'registry' | 'volume' | 'key' | 'account' | 'worker'

/**
 * The kind of object that an operation changes, by its name: an operation of REST, a mutation, or method and path of version 1.
 * @returns null for a name that says nothing of one
 */
export function objectKindOf(operation: string): AuditedKind | null {
  return KINDS.find(([, words]) => words.test(operation))?.[0] ?? null
}
