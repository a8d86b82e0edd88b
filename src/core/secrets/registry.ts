import { type FieldProblem, fieldProblem } from '../field-problem.ts'
import type { OwnerId, RegistryId } from '../ids.ts'

/** A credential for private images without its password, which is stored sealed and never returned. */
export interface Registry {
  readonly id: RegistryId
  readonly owner: OwnerId
  /** Name for people; not unique. */
  readonly name: string
  readonly username: string
  readonly createdAtMs: number
}

/** Fields of a registry that a caller sets. */
export interface RegistryInput {
  readonly name: string
  readonly username: string
  readonly password: string
}

const MAX_NAME = 191
/** Limit of characters of a user name and of a password. */
export const MAX_CREDENTIAL = 8_192

/** All problems of the given fields of a registry. */
export function registryProblems(input: Partial<RegistryInput>): FieldProblem[] {
  const problems: FieldProblem[] = []
  for (const [field, max] of [
    ['name', MAX_NAME],
    ['username', MAX_CREDENTIAL],
    ['password', MAX_CREDENTIAL],
  ] as const) {
    const text = input[field]
    if (text === undefined) continue
    if (text.trim() === '') problems.push(fieldProblem(field, 'must not be empty'))
    if (text.length > max) problems.push(fieldProblem(field, `must have at most ${max} characters`))
  }
  return problems
}
