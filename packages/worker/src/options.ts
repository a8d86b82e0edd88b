import { nearest } from './nearest.ts'
import type { StartOptions } from './types.ts'

/** All options: the compiler checks that none is missing. */
const OPTION_NAMES: Record<keyof StartOptions, true> = {
  handler: true,
  inputSchema: true,
  concurrency: true,
  refreshWorker: true,
  returnAggregateStream: true,
  resultRetryMs: true,
}

/** Throws a `TypeError` for invalid options of `start`, with all unknown names at once. */
export function checkOptions(options: StartOptions): void {
  if (typeof options !== 'object' || options === null) throw new TypeError('start needs { handler: a function }')
  const unknown = Object.keys(options).filter(name => !Object.hasOwn(OPTION_NAMES, name))
  if (unknown.length > 0) throw new TypeError(unknown.map(refusal).join('\n'))
  const { handler, inputSchema, concurrency = 1, resultRetryMs = 0 } = options
  if (typeof handler !== 'function') throw new TypeError('start needs { handler: a function }')
  if (inputSchema !== undefined && typeof inputSchema?.['~standard']?.validate !== 'function') {
    throw new TypeError('inputSchema must be a Standard Schema, such as one of zod or valibot')
  }
  const usable = typeof concurrency === 'function' || (Number.isInteger(concurrency) && concurrency >= 1)
  if (!usable) throw new TypeError('concurrency must be a whole number from 1, or a function')
  if (!(resultRetryMs >= 0)) throw new TypeError('resultRetryMs must be a number of milliseconds')
}

function refusal(name: string): string {
  const names = Object.keys(OPTION_NAMES)
  const meant = nearest(name, names)
  return `start has no option "${name}"; ${meant ? `did you mean "${meant}"?` : `the options are ${names.join(', ')}`}`
}
