/** Endpoints and templates of an account that use a secret, a credential or a volume. */
import type { Endpoint, Pod, Template } from './api-types.d.ts'

/** A thing that endpoints and templates use. */
export type Used =
  | { readonly secret: string }
  /** Id of a credential of a registry. */
  | { readonly registry: string }
  /** Id of a network volume or a global one. */
  | { readonly volume: string }

/** An endpoint, a template or a task. */
export interface User {
  readonly kind: 'endpoint' | 'template' | 'task'
  readonly id: string
  readonly name: string
}

/** The endpoints and the templates that use a thing, and the tasks that use a volume. */
export function findUsers(
  used: Used,
  endpoints: readonly Endpoint[],
  templates: readonly Template[],
  tasks: readonly Pod[] = [],
): readonly User[] {
  const uses = (
    of: Pick<Endpoint, 'env'> & { readonly registry?: string | null; readonly networkVolumes?: readonly string[] },
  ) => {
    if ('secret' in used) return usesSecret(of.env, used.secret)
    if ('registry' in used) return of.registry === used.registry
    return of.networkVolumes?.includes(used.volume) === true
  }
  return [
    ...endpoints.filter(uses).map(({ id, name }) => ({ kind: 'endpoint', id, name }) as const),
    ...templates.filter(uses).map(({ id, name }) => ({ kind: 'template', id, name }) as const),
    ...tasks.filter(uses).map(({ id, name }) => ({ kind: 'task', id, name }) as const),
  ]
}

/** Text in a variable that stands for the value of a secret. */
export function secretReference(name: string): string {
  return `{{ RUNPOD_SECRET_${name} }}`
}

/** True if a variable of an environment refers to a secret. */
function usesSecret(env: Readonly<Record<string, string>>, name: string): boolean {
  return Object.values(env).some(value =>
    [...value.matchAll(/\{\{\s*RUNPOD_SECRET_([A-Za-z0-9_.\-/]+)\s*\}\}/g)].some(([, named]) => named === name),
  )
}
