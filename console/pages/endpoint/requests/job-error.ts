/** Errors of jobs: text, or an SDK's record of an exception. */

/** A parsed error. */
export interface ReadError {
  /** Type and message, or the first line. */
  readonly title: string
  /** The rest: a traceback, or the lines after the first. */
  readonly trace: string | null
}

/** Parses an error, also one of a list whose end is cut. */
export function readError(error: string): ReadError {
  if (error.startsWith('{')) {
    const type = readMember(error, 'error_type')
    const message = readMember(error, 'error_message')
    if (type !== null || message !== null) {
      const trace = readMember(error, 'error_traceback')
      // Python writes a type as "<class 'ValueError'>".
      const name = type === null ? null : (/^<class '(.*)'>$/.exec(type)?.[1] ?? type)
      return { title: [name, message].filter(part => part !== null && part !== '').join(': '), trace: trace || null }
    }
  }
  const end = error.indexOf('\n')
  return end < 0
    ? { title: error, trace: null }
    : { title: error.slice(0, end), trace: error.slice(end + 1).trimEnd() || null }
}

/** One line for a list. */
export function firstLine(error: string): string {
  return readError(error).title.split('\n', 1)[0]!
}

/** A text member of the JSON of an error; of a cut JSON, as far as it goes. */
function readMember(json: string, name: string): string | null {
  const member = new RegExp(`"${name}":\\s*"((?:[^"\\\\]|\\\\.)*)`, 's').exec(json)?.[1]
  if (member === undefined) return null
  try {
    return JSON.parse(`"${member}"`) as string
  } catch {
    return member
  }
}
