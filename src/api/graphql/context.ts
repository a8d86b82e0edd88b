import type { Caller } from '../../core/accounts/permission.ts'
import type { AuditObject } from '../../core/audit/entry.ts'
import { findObjectKind } from '../../core/audit/object-kind.ts'
import { AppError } from '../../core/errors.ts'
import { isAppWorker } from '../../services/accounts/app-worker-keys.ts'
import { audited, changedBy, type ReportSave } from '../audited.ts'
import type { ApiParts } from '../parts.ts'
import type { SurfaceEnv } from '../surface.ts'
import type { Loaders } from './loaders.ts'

/** Context of a resolver: the caller (null: anonymous) and the loaders of the request. */
export interface GraphqlContext {
  readonly caller: Caller | null
  /** The client's own description of itself; empty without one. */
  readonly agent: string
  readonly loaders: Loaders
  readonly env: Pick<SurfaceEnv, 'address' | 'requestId' | 'session'>
}

/**
 * Wraps a resolver so that it gets the caller, who may write.
 * @param reports `reports`: the resolver reports the endpoint or template that it saves
 * @param forApps `for apps`: workers of apps may call it, too, and `run` decides what they may do
 */
export type Writing = <Arguments, Result>(
  run: (caller: Caller, args: Arguments, report: ReportSave) => Promise<Result>,
  reports?: 'reports' | null,
  forApps?: 'for apps',
) => (_: unknown, args: Arguments, context: GraphqlContext, info: { readonly fieldName: string }) => Promise<Result>

/**
 * Makes resolvers of mutations, which emit an event for each change.
 * @throws AppError `unauthorized` without a key, `forbidden` without the right
 */
export function writingFor(parts: ApiParts): Writing {
  const { emit } = parts.ports
  const { access } = parts
  return (run, reports, forApps) =>
    async (_, args, { caller, env }, { fieldName: operation }) => {
      if (caller === null) throw new AppError('unauthorized', 'an API key is needed to change anything')
      if (forApps === undefined || !isAppWorker(caller)) access.requireManagement(caller, 'write')
      const kind = findObjectKind(operation)
      const named = (result: unknown): AuditObject | null => {
        const id = auditedObject(result, args) ?? (kind === 'account' ? caller.owner : null)
        return kind === null || id === null ? null : { kind, id }
      }
      const entry = { surface: 'graphql', operation, caller, env, object: named(null) } as const
      const result = await audited(parts, entry, report => run(caller, args, report), {
        objectFromResult: named,
        reports: reports === 'reports',
      })
      const object = auditedObject(result, args)
      emit('change.made', { surface: 'graphql', operation, object, ...changedBy(caller, env) })
      return result
    }
}

/** Id of the object that a mutation changed: from its result, or from its arguments. */
function auditedObject(result: unknown, args: unknown): string | null {
  const { input = {}, ...rest } = Object(args) as Record<string, unknown>
  return findId(result) ?? findId({ ...rest, ...Object(input) })
}

function findId(value: unknown): string | null {
  const members = Object.entries(Object(value) as Record<string, unknown>)
  const idMember = members.find(
    ([name, text]) => typeof text === 'string' && /^(?:id|[a-zA-Z]+Id|templateName)$/.test(name),
  )
  return (idMember?.[1] as string | undefined) ?? null
}
