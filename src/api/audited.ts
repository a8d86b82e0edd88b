/** Operations of surfaces that are in the audit log. */

import type { Caller } from '../core/accounts/permission.ts'
import type { AuditObject, AuditOrigin } from '../core/audit/entry.ts'
import type { Change } from '../events.ts'
import type { AuditDescription, AuditedOperation, AuditLog, SeenChange } from '../services/audit/audit-log.ts'
import { endpointView, templateView } from '../services/audit/audit-views.ts'
import type { SavedEndpoint, WithTemplate } from '../services/endpoints/endpoints.ts'
import type { SavedTemplate } from '../services/endpoints/templates.ts'
import type { ApiParts } from './parts.ts'
import type { SurfaceEnv } from './surface.ts'

/** An operation that a caller asked for. */
export type CallerOperation = Omit<AuditedOperation, 'origin'> & {
  readonly caller: Caller
  readonly env: Pick<SurfaceEnv, 'address' | 'requestId' | 'session'>
}

/** Reports a saved endpoint or template to the audit log. */
export type ReportSave = (saved: SavedEndpoint | SavedTemplate) => void

/**
 * Runs an operation between its entries, as {@link AuditLog.change}.
 * @param look `reports`: `run` reports the object that it saves
 */
export function audited<Result>(
  { audit, auditViews }: ApiParts,
  { caller, env, ...asked }: CallerOperation,
  run: (report: ReportSave) => Promise<Result>,
  {
    reports = false,
    ...look
  }: Omit<AuditDescription<Result>, 'view'> & { readonly reports?: boolean | undefined } = {},
): Promise<Result> {
  const view = (object: AuditObject) => auditViews.find(caller.owner, object)
  return audit.change(
    { ...asked, origin: auditOrigin(caller, env) },
    report => run(saved => report(auditChange(saved))),
    reports ? look : { ...look, view },
  )
}

function auditChange(saved: SavedEndpoint | SavedTemplate): SeenChange {
  if ('endpoint' in saved) {
    const view = ({ endpoint, template }: WithTemplate) => endpointView(endpoint, template)
    return { before: saved.previous && view(saved.previous), after: view(saved) }
  }
  return { before: saved.previous && templateView(saved.previous), after: templateView(saved.template) }
}

/** The author of a change, for its event. */
export function changedBy(
  { owner: account, keyId: by }: Caller,
  { address, requestId }: CallerOperation['env'],
): Pick<Change, 'account' | 'by' | 'address' | 'requestId'> {
  return { account, by, address: address?.() ?? null, requestId }
}

/** The caller and its address. */
export function auditOrigin(caller: Caller, { address, requestId, session }: CallerOperation['env']): AuditOrigin {
  const { owner: account, keyId } = caller
  return { account, keyId, session: session !== undefined, address: address?.() ?? null, requestId }
}
