/** One answer of a model as it arrives. */
import { ApiError, errorSentence, JsonText, request } from '../../client/api.ts'
import { readEvents } from '../../client/event-source.ts'
import { duration, plural } from '../../format.ts'
import { newTurn, readAdded, type Turn } from './chat.ts'

/** Limit of characters of an answer that the page keeps. */
const MAX_TEXT = 200_000

/**
 * Sends a chat and calls back with the answer as it grows, and at its end. Never throws: a turn says what went wrong.
 * @param signal stops the answer, and with it the work of the model
 */
export async function askModel(
  { body, endpointId }: { readonly body: Readonly<Record<string, unknown>>; readonly endpointId: string },
  onTurn: (turn: Turn) => void,
  signal: AbortSignal,
): Promise<Turn> {
  const startMs = performance.now()
  let turn = newTurn('assistant')
  let firstMs: number | null = null
  let tokens: number | null = null
  const add = (data: string) => {
    const added = readAdded(data)
    tokens = added.tokens ?? tokens
    if (added.text === '' && added.reasoning === '' && added.problem === null) return
    firstMs ??= performance.now() - startMs
    const text = turn.text + added.text
    const isOver = text.length > MAX_TEXT
    const problem = added.problem ?? (isOver ? 'The answer is longer than this page keeps.' : turn.problem)
    turn = { ...turn, text: text.slice(0, MAX_TEXT), reasoning: turn.reasoning + added.reasoning, problem }
    onTurn(turn)
    if (isOver) throw new Error('The answer is longer than this page keeps.')
  }
  try {
    const json = new JsonText(JSON.stringify(body))
    const response = await request('POST', '/openai/v1/chat/completions', { body: json, signal })
    const job = response.headers.get('x-runyard-job-id')
    turn = { ...turn, job: job === null ? null : `/endpoints/${endpointId}/requests?job=${encodeURIComponent(job)}` }
    onTurn(turn)
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
      for await (const { data } of readEvents(response)) if (data !== '[DONE]') add(data)
    } else add(await response.text())
  } catch (error) {
    turn = { ...turn, problem: signal.aborted ? 'Stopped.' : problemText(error) }
  }
  const all = duration(performance.now() - startMs)
  const first = firstMs === null || body.stream !== true ? '' : `first words after ${duration(firstMs)}, `
  const said = tokens === null ? '' : `, ${plural(tokens, 'token')}`
  turn = { ...turn, note: `${first}${all} in all${said}` }
  onTurn(turn)
  return turn
}

function problemText(error: unknown): string {
  if (!(error instanceof ApiError)) return `The answer broke off: ${errorSentence(error)}`
  return error.message
}
