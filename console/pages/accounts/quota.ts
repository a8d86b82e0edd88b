/** Limits of accounts as people read and write them. */

/** The limits that the operator sets, each with the title of what it counts. */
export const LIMITS = {
  objects: 'Objects of each kind',
  workersMin: 'Minimum of workers of all endpoints',
  workers: 'Workers',
  gpus: 'GPUs',
  queuedJobs: 'Waiting jobs',
  queuedMb: 'MB of waiting inputs',
  storedMb: 'MB of stored inputs and results',
  secretsMb: 'MB of secrets',
  buildsMb: 'MB of builds of apps',
  logsMb: 'MB of logs of workers',
} as const

/** The limits of an account: a number, null for none; a missing member has the default of the server. */
export type Limits = { readonly [Name in keyof typeof LIMITS]?: number | null }

/** A limit as a field has it: empty for the default. */
export function limitText(limit: number | null | undefined): string {
  return limit === undefined ? '' : String(limit ?? 'none')
}

/**
 * The limits from fields by name. A text that is not a number is sent as it is, so that the
 * server reports the problem.
 */
export function readLimits(texts: Readonly<Record<string, unknown>>): Limits {
  const entries = Object.keys(LIMITS).map(name => [name, String(texts[`limits.${name}`] ?? '').trim()] as const)
  return Object.fromEntries(
    entries.filter(([, text]) => text !== '').map(([name, text]) => [name, text === 'none' ? null : readNumber(text)]),
  )
}

function readNumber(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : (text as unknown as number)
}

/** The title of a quota, such as `Endpoints`. */
export function quotaName(quota: string): string {
  return (LIMITS as Readonly<Record<string, string>>)[quota] ?? quota.replace(/^./, first => first.toUpperCase())
}
