/** The members of the error that RunPod's Python SDK makes of an exception. */
interface PythonError {
  readonly error_type?: unknown
  readonly error_message?: unknown
  readonly error_traceback?: unknown
}

/** The error of a job for people: the traceback of a Python handler as a traceback, anything else as it is. */
export function jobErrorText(error: string): string {
  const { error_type: type, error_message: message, error_traceback: traceback } = readObject(error)
  if (typeof traceback !== 'string') return error
  const trace = traceback.trimEnd()
  if (typeof message !== 'string' || trace.includes(message)) return trace
  // The type is written as <class 'ValueError'>.
  const name = /'([^']+)'/.exec(String(type))?.[1] ?? String(type)
  return `${trace}\n${name}: ${message}`
}

function readObject(text: string): PythonError {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
