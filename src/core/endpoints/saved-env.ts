import type { FieldProblem } from '../field-problem.ts'
import type { Endpoint, EndpointConfig } from './endpoint.ts'
import { servingVariableProblems } from './serving.ts'
import type { Template } from './template.ts'

/**
 * The variables that workers of an endpoint get, as they were saved: those of the endpoint win over its template's.
 */
export function savedEnv(endpoint: Pick<Endpoint, 'env'>, template: Pick<Template, 'env'>): Record<string, string> {
  return { ...template.env, ...endpoint.env }
}

/** An endpoint with its template; null when that is gone. */
export interface EndpointWithTemplate {
  readonly endpoint: Endpoint
  readonly template: Template | null
}

/**
 * Variables after a change of some of them.
 * @param changes a value adds or replaces a variable, null removes it; removing a missing one has no effect
 */
export function changedEnv(
  env: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string | null>>,
): Record<string, string> {
  const changed = new Map(Object.entries(env))
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) changed.delete(name)
    else changed.set(name, value)
  }
  return Object.fromEntries(changed)
}

/** Parts of an endpoint that decide the variables of its workers. */
export interface Configured {
  readonly config: Pick<EndpointConfig, 'type' | 'env'>
  readonly template: Pick<Template, 'env'>
}

/**
 * Problems of the variables by which workers of a load-balancing endpoint serve. An unchanged variable is not
 * checked again, so that an endpoint that has an invalid one can still be paused.
 */
export function servingChangeProblems({ config, template }: Configured, previous: Configured | null): FieldProblem[] {
  if (config.type !== 'LOAD_BALANCER') return []
  const wasServing = previous?.config.type === 'LOAD_BALANCER'
  const present = wasServing ? savedEnv(previous.config, previous.template) : {}
  return servingVariableProblems(savedEnv(config, template), present)
}
