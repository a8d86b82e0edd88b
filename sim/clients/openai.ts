import type { JobId } from '../../src/core/ids.ts'
import { type Chunk, StreamChecker } from '../checks/stream-checker.ts'
import type { Reply } from '../network.ts'
import type { JobPlan, StoryParts } from './plan.ts'

/** Asks as an OpenAI client does, and again where there is no server. A client that goes away leaves its job to be cancelled. */
export async function askOpenAi(parts: StoryParts, plan: JobPlan): Promise<void> {
  const { world, checks, calls, life, random } = parts
  for (let tries = 0; tries < 5; tries += 1) {
    const endpoint = parts.endpoint()
    const text: string[] = []
    checks.clients.submits(endpoint, plan.tag, null)
    const timeoutMs = random.chance(0.2) ? random.int(500, 10_000) : 100_000
    const asking = { body: plan.body, timeoutMs, onPart: (part: string) => void text.push(part) }
    const reply = await calls.post(endpoint, 'openai/v1/completions', asking)
    world.count(`openai: ${reply.ok ? reply.status : reply.why}`)
    if (reply.ok && reply.status === 200) {
      checkAnswer(parts, reply, plan.streamed ? text.join('') : null)
      return
    }
    // 499: somebody has cancelled the job.
    const expected = [404, 499, ...(checks.isLimited ? [429] : [])]
    if (reply.ok && reply.status < 500 && !expected.includes(reply.status))
      world.report(`an OpenAI request was answered with ${reply.status} ${reply.text}`)
    if (!reply.ok && reply.why === 'timeout') return
    await life.sleep(random.int(500, 5_000))
  }
}

/** A complete stream has each chunk once, of one run, and `[DONE]` behind them. */
function checkAnswer({ world, checks }: StoryParts, reply: Reply & { readonly ok: true }, stream: string | null): void {
  const id = reply.headers.get('x-runyard-job-id') as JobId
  if (stream === null || !reply.headers.get('content-type')!.startsWith('text/event-stream')) {
    if (!reply.text.includes(id)) world.report(`the OpenAI answer of job ${id} is ${reply.text}`)
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
