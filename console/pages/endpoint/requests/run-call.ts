/** Calls that the runner makes, and the same calls as commands. */

/** Kind of a call. */
export type Mode = 'run' | 'runsync' | 'stream' | 'openai'

/** Options beside the input; empty texts are left out. */
export interface RunOptions {
  readonly webhook: string
  /** Seconds. */
  readonly executionTimeout: string
  /** Seconds. */
  readonly ttl: string
  readonly lowPriority: boolean
}

/** Options that change nothing. */
export const NO_OPTIONS: RunOptions = { webhook: '', executionTimeout: '', ttl: '', lowPriority: false }

/** A request: its path, and its body as a text, so that large integers stay as they were typed. */
export interface Call {
  readonly path: string
  readonly body: string
}

/** Time that `runsync` is held, in milliseconds; the job goes on after that, and the page follows it. */
const SYNC_WAIT_MS = 300_000

/** The call of a mode. @param input JSON text: the input of a job, or the body of an OpenAI request */
export function buildCall(endpointId: string, mode: Mode, input: string, options: RunOptions): Call {
  const base = `/v2/${encodeURIComponent(endpointId)}`
  if (mode === 'openai') return { path: `${base}/openai/v1/chat/completions`, body: input.trim() }
  const path = mode === 'runsync' ? `${base}/runsync?wait=${SYNC_WAIT_MS}` : `${base}/run`
  return { path, body: `{"input": ${input.trim()}${optionMembers(options)}}` }
}

function optionMembers({ webhook, executionTimeout, ttl, lowPriority }: RunOptions): string {
  const policy = {
    ...(executionTimeout.trim() === '' ? {} : { executionTimeout: milliseconds(executionTimeout) }),
    ...(ttl.trim() === '' ? {} : { ttl: milliseconds(ttl) }),
    ...(lowPriority ? { lowPriority } : {}),
  }
  const parts = {
    ...(webhook.trim() === '' ? {} : { webhook: webhook.trim() }),
    ...(Object.keys(policy).length === 0 ? {} : { policy }),
  }
  return Object.entries(parts)
    .map(([name, value]) => `, "${name}": ${JSON.stringify(value)}`)
    .join('')
}

/**
 * The milliseconds of typed seconds. Another text goes to the server as it is, so that the
 * server reports the problem.
 */
function milliseconds(seconds: string): number | string {
  const ms = Math.round(Number(seconds) * 1_000)
  return Number.isFinite(ms) ? ms : seconds
}

/** Reason why a text is not an input of a mode; null if it is. */
export function inputProblem(text: string, mode: Mode): string | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return (error as Error).message
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'it must be a JSON object, such as {"prompt": "Hello"}'
  if (mode === 'openai' && !Array.isArray((value as { messages?: unknown }).messages))
    return 'a chat needs "messages": [{"role": "user", "content": "Hello"}]'
  return null
}

/** The `input` of a whole request that was pasted as an input; null for any other text. */
export function innerInput(text: string): string | null {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const isRequest = Object.keys(value).every(name => ['input', 'webhook', 'policy', 's3Config'].includes(name))
    return isRequest && typeof value.input === 'object' && value.input !== null
      ? JSON.stringify(value.input, null, 2)
      : null
  } catch {
    return null
  }
}

/** The call as a command for a shell. @param url base address of the public API */
export function curlCommand(url: string, endpointId: string, mode: Mode, { path, body }: Call): string {
  const send = (flags: string) =>
    [
      `curl ${flags} ${quoted(url + path)}`,
      `-H "Authorization: Bearer $RUNYARD_API_KEY"`,
      "-H 'Content-Type: application/json'",
      `-d ${quoted(body)}`,
    ].join(' \\\n  ')
  if (mode === 'openai') return send('-sSN')
  if (mode !== 'stream') return send('-sS')
  const stream = `${url}/v2/${encodeURIComponent(endpointId)}/stream/$JOB`
  return [
    `JOB=$(${send('-sS')} \\\n  | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')`,
    `curl -sSN "${stream}" \\\n  -H "Authorization: Bearer $RUNYARD_API_KEY" \\\n  -H 'Accept: text/event-stream'`,
  ].join('\n')
}

/** A text as one word of a shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** The text that an event of a chat adds; null if it adds none. */
export function chatDelta(data: string): string | null {
  try {
    const { choices } = JSON.parse(data) as {
      choices?: readonly {
        delta?: { content?: unknown; reasoning_content?: unknown }
        message?: { content?: unknown }
      }[]
    }
    const first = choices?.[0]
    const text = first?.delta?.content ?? first?.delta?.reasoning_content ?? first?.message?.content
    return typeof text === 'string' ? text : null
  } catch {
    return null
  }
}
