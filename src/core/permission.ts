import type { EndpointId, KeyId, OwnerId } from './ids.ts'

/** What a key may do in one area. */
export type AccessLevel = 'none' | 'read' | 'write'

/** The rights of a key. */
export interface KeyScope {
  readonly management: AccessLevel
  readonly jobs: AccessLevel
  /** The endpoints whose jobs it reaches; null for all of its owner's. */
  readonly endpoints: readonly EndpointId[] | null
}

/** All rights. */
export const FULL_SCOPE: KeyScope = { management: 'write', jobs: 'write', endpoints: null }

/** An API key as the store keeps it: the hash, never the key. */
export interface ApiKey {
  readonly id: KeyId
  readonly owner: OwnerId
  readonly name: string
  readonly hash: string
  readonly scope: KeyScope
  /** No REST windows and no `RateLimit` headers. */
  readonly exempt: boolean
  readonly disabled: boolean
  readonly expiresAtMs: number | null
  readonly createdAtMs: number
}

/** Who makes a request, after its key was checked. */
export interface Caller {
  readonly owner: OwnerId
  readonly keyId: KeyId
  readonly scope: KeyScope
  readonly exempt: boolean
}

/** Whether the caller may do what needs `level` in management. */
export function mayManage(caller: Caller, level: 'read' | 'write'): boolean {
  return covers(caller.scope.management, level)
}

/** Whether the caller may do what needs `level` with the jobs of this endpoint. */
export function mayUseJobs(caller: Caller, level: 'read' | 'write', endpoint: EndpointId): boolean {
  const { jobs, endpoints } = caller.scope
  return covers(jobs, level) && (endpoints === null || endpoints.includes(endpoint))
}

function covers(has: AccessLevel, needs: 'read' | 'write'): boolean {
  return has === 'write' || has === needs
}
