import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { OwnerId, SecretId } from '../ids.ts'

/** A secret without its value, which is stored sealed and never returned. */
export interface Secret {
  readonly id: SecretId
  readonly owner: OwnerId
  readonly name: string
  readonly description: string | null
  readonly createdAtMs: number
  /** Instant of the last change of its value; null while it has its first value. */
  readonly valueUpdatedAtMs: number | null
}

/** Exclusive limit of the bytes of a value. */
const MAX_VALUE_BYTES = 16 * 1024 * 1024
const MAX_DESCRIPTION = 65_535

/** Fields of a secret that a caller sets. */
export interface SecretInput {
  readonly name: string
  readonly value: string
  readonly description: string | null
}

/** All problems of the given fields of a secret. */
export function secretProblems({ name, value, description }: Partial<SecretInput>): FieldProblem[] {
  const problems: FieldProblem[] = []
  if (name !== undefined && !/^[A-Za-z0-9_][A-Za-z0-9_.\-/]{0,190}$/.test(name)) {
    const form = 'must have 1 to 191 letters, digits or _ . - /, and begin with a letter, a digit or _'
    problems.push(fieldProblem('name', form))
  }
  if (name !== undefined && /^RUNPOD/i.test(name)) problems.push(fieldProblem('name', 'must not start with RUNPOD'))
  if (value === '') problems.push(fieldProblem('value', 'must not be empty'))
  if (value !== undefined && Buffer.byteLength(value) >= MAX_VALUE_BYTES) {
    problems.push(fieldProblem('value', 'must be smaller than 16 MiB'))
  }
  if (description != null && description.length > MAX_DESCRIPTION) {
    problems.push(fieldProblem('description', `must have at most ${MAX_DESCRIPTION} characters`))
  }
  return problems
}

const REFERENCE = /\{\{\s*RUNPOD_SECRET_([A-Za-z0-9_.\-/]+)\s*\}\}/g

/** The names of all secrets that the values of an environment refer to, each once. */
export function secretNames(env: Readonly<Record<string, string>>): string[] {
  const names = Object.values(env).flatMap(value => [...value.matchAll(REFERENCE)].map(match => match[1]!))
  return [...new Set(names)]
}

/**
 * The environment with each `{{ RUNPOD_SECRET_name }}` replaced. A name without a value stays as it is.
 * @param values secret name to value
 */
export function resolveSecrets(
  env: Readonly<Record<string, string>>,
  values: ReadonlyMap<string, string>,
): Record<string, string> {
  const resolve = (value: string) => value.replace(REFERENCE, (literal, name: string) => values.get(name) ?? literal)
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, resolve(value)]))
}
