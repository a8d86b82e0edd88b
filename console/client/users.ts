/** Endpoints and templates of an account that use a secret, a credential or a volume. */
import type { Endpoint, Template } from './api-types.d.ts'

/** A thing that endpoints and templates use. */
export type Used =
  | { readonly secret: string }
  /** Id of a credential of a registry. */
  | { readonly registry: string }
  /** Id of a network volume. */
  | { readonly volume: string }

/** An endpoint or a template. */
export interface User {
  readonly kind: 'endpoint' | 'template'
  readonly id: string
  readonly name: string
}

/** The endpoints and the templates that use a thing. */
export function findUsers(used: Used, endpoints: readonly Endpoint[], templates: readonly Template[]): readonly User[] {
  const uses = (of: Pick<Endpoint, 'env' | 'registry'> & { readonly networkVolumes?: readonly string[] }) => {
    if ('secret' in used) return usesSecret(of.env, used.secret)
    if ('registry' in used) return of.registry === used.registry
    return of.networkVolumes?.includes(used.volume) === true
  }
  return [
    ...endpoints.filter(uses).map(({ id, name }) => ({ kind: 'endpoint', id, name }) as const),
    ...templates.filter(uses).map(({ id, name }) => ({ kind: 'template', id, name }) as const),
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
