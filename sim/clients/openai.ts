import type { JobId } from '../../src/core/ids.ts'
import { type Chunk, StreamChecker } from '../checks/stream-checker.ts'
import type { Reply } from '../network.ts'
import type { JobPlan, ScenarioParts } from './plan.ts'

/**
 * Sends a request like an OpenAI client, with retries while no server responds. When the client goes
 * away, its job is cancelled.
 */
export async function askOpenAi(parts: ScenarioParts, plan: JobPlan): Promise<void> {
  const { world, checks, calls, life, random } = parts
  for (let attempts = 0; attempts < 5; attempts += 1) {
    const endpoint = parts.endpoint()
    const text: string[] = []
    checks.clients.submits(endpoint, plan.tag, null)
    const timeoutMs = random.chance(0.2) ? random.int(500, 10_000) : 100_000
    const options = { body: plan.body, timeoutMs, onPart: (part: string) => void text.push(part) }
    const reply = await calls.post(endpoint, 'openai/v1/completions', options)
    world.count(`openai: ${reply.ok ? reply.status : reply.why}`)
    if (reply.ok && reply.status === 200) {
      checkResponse(parts, reply, plan.streamed ? text.join('') : null)
      return
    }
    // 499: the job was cancelled.
    const expected = [404, 499, ...(checks.isLimited ? [429] : [])]
    if (reply.ok && reply.status < 500 && !expected.includes(reply.status))
      world.report(`an OpenAI request got ${reply.status} ${reply.text}`)
    if (!reply.ok && reply.why === 'timeout') return
    await life.sleep(random.int(500, 5_000))
  }
}

/** Checks a response. A complete stream has each chunk of one run once, then `[DONE]`. */
function checkResponse(
  { world, checks }: ScenarioParts,
  reply: Reply & { readonly ok: true },
  stream: string | null,
): void {
  const id = reply.headers.get('x-runyard-job-id') as JobId
  if (stream === null || !reply.headers.get('content-type')!.startsWith('text/event-stream')) {
    if (!reply.text.includes(id)) world.report(`the OpenAI response of job ${id} is ${reply.text}`)
    return
  }
  const data = stream.split('\n\n').filter(event => event.startsWith('data: '))
  const texts = data.map(event => event.slice(6))
  const chunks = texts.filter(text => text.startsWith('{"job"')).map(text => JSON.parse(text) as Chunk)
  const checker = new StreamChecker(
    id,
    problem => world.report(problem),
    nonce => checks.runs.find(nonce),
  )
  checker.excuse({ missed: false, repeated: true })
  checker.got(chunks, null)
  if (new Set(chunks.map(({ nonce }) => nonce)).size > 1) world.report(`the OpenAI stream of job ${id} has two runs`)
  if (texts.at(-1) === '[DONE]') checker.completed(chunks[0]?.nonce ?? null)
}
