/** Addresses of the platform and identity of this worker. Only the job id is still missing in the addresses. */
export type Config = {
  workerId: string
  /** Ids in error reports; `unknown` if the platform gave none. */
  reported: { workerId: string; hostname: string }
  token: string | undefined
  takeUrl: string
  /** Undefined if the take address has no `/job-take/` part to replace: jobs are then taken one by one. */
  batchUrl: string | undefined
  stopUrl: string | undefined
  outputUrl: string
  /** Takes the results of several jobs; undefined on a platform without such a call. */
  resultsUrl: string | undefined
  streamUrl: string | undefined
  pingUrl: string | undefined
  pingMs: number
}

/** Reads the worker's environment. Throws an `Error` with the name of a required variable that is missing. */
export function readConfig(env: Record<string, string | undefined>): Config {
  const workerId = env.RUNPOD_POD_ID || globalThis.crypto.randomUUID()
  const fill = (url: string | undefined) => url && substitute(url, '$RUNPOD_POD_ID', workerId)
  const takeUrl = fill(env.RUNPOD_WEBHOOK_GET_JOB)
  const outputUrl = fill(env.RUNPOD_WEBHOOK_POST_OUTPUT)
  if (!takeUrl) throw new Error('RUNPOD_WEBHOOK_GET_JOB is not set: jobs could not be taken')
  if (!outputUrl) throw new Error('RUNPOD_WEBHOOK_POST_OUTPUT is not set: results could not be delivered')
  const take = substitute(takeUrl, '$ID', workerId)
  const sibling = (name: string) => (take.includes('/job-take/') ? take.replace('/job-take/', `/${name}/`) : undefined)
  const pingMs = Number(env.RUNPOD_PING_INTERVAL)
  return {
    workerId,
    reported: { workerId: env.RUNPOD_POD_ID || 'unknown', hostname: env.RUNPOD_POD_HOSTNAME || 'unknown' },
    token: env.RUNPOD_AI_API_KEY || undefined,
    takeUrl: take,
    batchUrl: sibling('job-take-batch'),
    stopUrl: sibling('job-stop'),
    outputUrl,
    resultsUrl: fill(env.RUNYARD_WEBHOOK_POST_OUTPUTS) || undefined,
    streamUrl: fill(env.RUNPOD_WEBHOOK_POST_STREAM) || undefined,
    pingUrl: fill(env.RUNPOD_WEBHOOK_PING) || undefined,
    pingMs: pingMs > 0 ? Math.max(100, pingMs) : 10_000,
  }
}

/** Address of a post about a job. */
export function jobUrl(template: string, jobId: string, isStream: boolean): string {
  return withQuery(substitute(template, '$ID', jobId), { isStream: String(isStream) })
}

/** Appends query parameters to an address, which may have some already. */
export function withQuery(url: string, query: Record<string, string>): string {
  const text = Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
  const joint = /[?&]$/.test(url) ? '' : url.includes('?') ? '&' : '?'
  return `${url}${joint}${text}`
}

function substitute(url: string, placeholder: string, value: string): string {
  return url.replaceAll(placeholder, () => encodeURIComponent(value))
}
