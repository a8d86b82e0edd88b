import type { SchemaIssue } from './standard-schema.ts'
import type { Job, StartOptions } from './types.ts'

/** Maximum number of faults in a message; further ones are only counted. */
const MOST_ISSUES = 20

/** The error of an input that does not fit the schema; the message has a line with the path of each fault. */
export class InputError extends Error {
  override name = 'InputError'

  constructor(issues: readonly SchemaIssue[]) {
    const lines = issues.slice(0, MOST_ISSUES).map(({ message, path = [] }) => `${pathText(path)}: ${message}`)
    const more = issues.length - lines.length
    super([...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n'))
    // The stack is of no use to the caller of the job.
    this.stack = ''
  }
}

/** The job with the value that the schema returns for its input. @throws InputError if the input does not fit */
export async function checkInput(job: Job, schema: StartOptions['inputSchema']): Promise<Job> {
  if (!schema) return job
  const result = await schema['~standard'].validate(job.input)
  if (result.issues) throw new InputError(result.issues)
  return { ...job, input: result.value }
}

function pathText(path: NonNullable<SchemaIssue['path']>): string {
  const keys = path.map(segment => (typeof segment === 'object' ? segment.key : segment))
  const steps = keys.map(key =>
    typeof key === 'number' || /^\d+$/.test(String(key)) ? `[${String(key)}]` : named(key),
  )
  return `input${steps.join('')}`
}

function named(key: PropertyKey): string {
  const text = String(key)
  return /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(text) ? `.${text}` : `[${JSON.stringify(text)}]`
}
