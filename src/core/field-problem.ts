/**
 * A problem of a field of the input. Core and services return it as data; a surface renders it with its own name of
 * the field.
 */
export interface FieldProblem {
  /** The name in the model, or a path of one of its members such as `scaler.type`. */
  readonly field: string
  /** The wrong part of the field, such as one item of a list. */
  readonly item?: string
  /** The value of the field, if the sentence names it. */
  readonly value?: string
  /** The problem without the field's name. `{other}` stands for the name of `other`. */
  readonly problem: string
  /** The second field of a problem between two. */
  readonly other?: string
}

/** A problem of a field, or of one item in it. */
export function fieldProblem(field: string, problem: string, item?: string): FieldProblem {
  return item === undefined ? { field, problem } : { field, item, problem }
}

/**
 * A problem between two fields.
 * @param problem sentence in which `{other}` stands for the name of the second field
 */
export function pairProblem(field: string, other: string, problem: string): FieldProblem {
  return { field, other, problem }
}

/** Names of fields on a surface; those that are left out keep the model's name. */
export type FieldNames = Readonly<Record<string, string>>

/** A problem as a sentence that begins with the name of the field. */
export function problemSentence(problemData: FieldProblem, names: FieldNames = {}): string {
  const { field, item, value, problem, other } = problemData
  const name = names[field] ?? field
  const subject = value === undefined ? name : `${name} (${value})`
  const text = withOther(problem, other, names)
  return item === undefined ? `${subject} ${text}` : `${name}: ${item} ${text}`
}

/** A problem without the name of its field, for surfaces that print a path before it. */
export function problemWithoutField(problemData: FieldProblem, names: FieldNames = {}): string {
  const subject = problemData.item ?? problemData.value
  const text = withOther(problemData.problem, problemData.other, names)
  return subject === undefined ? text : `${subject} ${text}`
}

/** Problems without duplicates. */
export function distinctProblems(problems: readonly FieldProblem[]): FieldProblem[] {
  return [...new Map(problems.map(problem => [problemSentence(problem), problem])).values()]
}

/** Problems of a name that a user chose: it must have 1 to 191 characters, and not be blank. */
export function nameProblems(name: string): FieldProblem[] {
  if (name.trim() === '') return [fieldProblem('name', 'must not be empty')]
  return name.length > MAX_NAME ? [fieldProblem('name', `must have at most ${MAX_NAME} characters`)] : []
}

const MAX_NAME = 191

function withOther(problem: string, other: string | undefined, names: FieldNames): string {
  return other === undefined ? problem : problem.replace('{other}', () => names[other] ?? other)
}
