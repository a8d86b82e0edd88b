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

/**
 * The name among `names` that is most likely meant by `typed`; undefined if none is near. Case and underscores do not
 * count, so that `return_aggregate_stream` is found too.
 */
function nearest(typed: string, names: readonly string[]): string | undefined {
  const bare = strip(typed)
  const rated = names.map(name => ({ name, away: distance(bare, strip(name)) }))
  const [best] = rated.sort((a, b) => a.away - b.away)
  return best !== undefined && best.away <= Math.max(2, bare.length / 3) ? best.name : undefined
}

function strip(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase().slice(0, 64)
}

/** Number of letters to add, remove or replace; 1 if one name contains the other. */
function distance(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a]
  if (short.length >= 4 && long.includes(short)) return Math.min(1, long.length - short.length)
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [line, letter] of Array.from(a).entries()) {
    const next = [line + 1]
    for (const [column, other] of Array.from(b).entries()) {
      const replaced = (row[column] as number) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[column + 1] as number) + 1, (next[column] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
