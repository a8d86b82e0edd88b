/** Fields that problems name, in the words of the model. Each surface has a table of the fields that it names differently. */
export type FieldName =
  | 'name'
  | 'type'
  | 'image'
  | 'args'
  | 'readme'
  | 'diskGb'
  | 'volumeGb'
  | 'env'
  | 'ports'
  | 'portLabels'
  | 'registry'
  | 'templateId'
  | 'workersMin'
  | 'workersMax'
  | 'workersPfbTarget'
  | 'rollout.canary'
  | 'idleTimeoutS'
  | 'executionTimeoutMs'
  | 'scaler.type'
  | 'scaler.queueDelayS'
  | 'scaler.requestCount'
  | 'compute.pools'
  | 'compute.excludedTypes'
  | 'compute.count'
  | 'compute.configs'
  | 'compute.allowedCudaVersions'
  | 'compute.minCudaVersion'
  | 'allowedCudaVersions'
  | 'locations'
  | 'networkVolumeIds'
  | 'modelReferences'
  | 'corsOrigins'
  | 'domain'
  | 'compliance'
  | 'sizeGb'
  | 'dataCenter'
  | 'value'
  | 'description'
  | 'username'
  | 'password'
  | 'limits'
  | 'sshKeys'
  | 'scope'
  | 'expiresAtMs'
  | 'limit'
  | 'cursor'
  | 'size'
  | 'lastN'
  | 'startMs'
  | 'endMs'
  | 'fromMs'
  | 'toMs'

/** What is wrong with a field of the input. Core and services return it as data; a surface renders it with its own name of the field. */
export interface FieldProblem {
  readonly field: FieldName
  /** What of the field is wrong, such as one item of a list. */
  readonly item?: string
  /** The value of the field, where the sentence names it. */
  readonly value?: string
  /** What is wrong with it, without the field's name. `{other}` stands for the name of `other`. */
  readonly problem: string
  /** The second field of a problem between two. */
  readonly other?: FieldName
}

/** A problem of a field, or of one item in it. */
export function fieldProblem(field: FieldName, problem: string, item?: string): FieldProblem {
  return item === undefined ? { field, problem } : { field, item, problem }
}

/** A problem between two fields. @param problem in which `{other}` stands for the name of the other one */
export function pairProblem(field: FieldName, other: FieldName, problem: string): FieldProblem {
  return { field, other, problem }
}

/** Names of fields on a surface; those that are left out keep the model's name. */
export type FieldNames = Readonly<Partial<Record<FieldName, string>>>

/** A problem as a sentence that begins with the name of the field. */
export function problemSentence(found: FieldProblem, names: FieldNames = {}): string {
  const { field, item, value, problem, other } = found
  const name = names[field] ?? field
  const subject = value === undefined ? name : `${name} (${value})`
  const text = withOther(problem, other, names)
  return item === undefined ? `${subject} ${text}` : `${name}: ${item} ${text}`
}

/** A problem without the name of its field, for surfaces that put a path in front. */
export function problemWithoutField(found: FieldProblem, names: FieldNames = {}): string {
  const subject = found.item ?? found.value
  const text = withOther(found.problem, found.other, names)
  return subject === undefined ? text : `${subject} ${text}`
}

/** Problems without those that say the same. */
export function distinctProblems(problems: readonly FieldProblem[]): FieldProblem[] {
  return [...new Map(problems.map(problem => [problemSentence(problem), problem])).values()]
}

/** Problems of a name that people give: it must have 1 to 191 characters, and not be blank. */
export function nameProblems(name: string): FieldProblem[] {
  if (name.trim() === '') return [fieldProblem('name', 'must not be empty')]
  return name.length > MAX_NAME ? [fieldProblem('name', `must have at most ${MAX_NAME} characters`)] : []
}

const MAX_NAME = 191

function withOther(problem: string, other: FieldName | undefined, names: FieldNames): string {
  return other === undefined ? problem : problem.replace('{other}', () => names[other] ?? other)
}
