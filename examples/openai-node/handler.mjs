// A handler that OpenAI clients can call: it answers chat completions, streamed or not, and the list of models.
import { start } from '@runyard/worker'

const MODEL = 'echo'

/** Put your model here: yields the parts of an answer. */
async function* answer(messages) {
  const last = messages.at(-1)?.content ?? ''
  for (const word of `You said: ${last}`.split(/(?<= )/)) yield word
}

function chunk(id, delta, finish = null) {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return { id, object: 'chat.completion.chunk', created: Math.floor(Date.now() / 1000), model: MODEL, choices }
}

async function* complete(id, { messages = [], stream = false }) {
  if (!stream) {
    const parts = []
    for await (const part of answer(messages)) parts.push(part)
    const message = { role: 'assistant', content: parts.join('') }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    yield { id, object: 'chat.completion', created: Math.floor(Date.now() / 1000), model: MODEL, choices }
    return
  }
  yield chunk(id, { role: 'assistant', content: '' })
  for await (const part of answer(messages)) yield chunk(id, { content: part })
  yield chunk(id, {}, 'stop')
}

async function* handler({ id, input }) {
  const { openai_route: route, openai_input: request = {} } = input
  if (route === '/v1/models') yield { object: 'list', data: [{ id: MODEL, object: 'model', owned_by: 'me' }] }
  else if (route === '/v1/chat/completions') yield* complete(id, request)
  else throw new Error(`there is no ${route}`)
}

await start({ handler })
