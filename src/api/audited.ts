/** Operations of surfaces that are in the audit log. */

import type { Caller } from '../core/accounts/permission.ts'
import type { AuditObject, AuditOrigin } from '../core/audit/entry.ts'
import type { Change } from '../events.ts'
import type { AuditedOperation, AuditLog, AuditLook } from '../services/audit/audit-log.ts'
import type { AuditViews } from '../services/audit/audit-views.ts'
import type { SurfaceEnv } from './surface.ts'

/** What surfaces need for it. */
export interface AuditParts {
  readonly audit: AuditLog
  readonly auditViews: AuditViews
}

/** An operation that a caller asked for. */
export type AskedOperation = Omit<AuditedOperation, 'origin'> & {
  readonly caller: Caller
  readonly env: Pick<SurfaceEnv, 'address' | 'requestId' | 'session'>
}

/** Runs an operation between its entries, as {@link AuditLog.change}. */
export function audited<Result>(
  { audit, auditViews }: AuditParts,
  { caller, env, ...asked }: AskedOperation,
  run: () => Promise<Result>,
  look: Omit<AuditLook<Result>, 'view'> = {},
): Promise<Result> {
  const view = (object: AuditObject) => auditViews.find(caller.owner, object)
  return audit.change({ ...asked, origin: originOf(caller, env) }, run, { ...look, view })
}

/** Whose change it was, for the event that tells of it. */
export function changedBy(
  { owner: account, keyId: by }: Caller,
  { address, requestId }: AskedOperation['env'],
): Pick<Change, 'account' | 'by' | 'address' | 'requestId'> {
  return { account, by, address: address?.() ?? null, requestId }
}

/** Who asked, and from where. */
export function originOf(caller: Caller, { address, requestId, session }: AskedOperation['env']): AuditOrigin {
  const { owner: account, keyId } = caller
  return { account, keyId, session: session !== undefined, address: address?.() ?? null, requestId }
}
