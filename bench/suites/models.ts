/**
 * Cost of one base URL for all models: the same chat to the same worker at its own address, at the OpenAI route of its
 * endpoint and at `/openai/v1`, where `model` names the endpoint; and of reading tokens, beside a request to a path
 * whose answers are not read. All sides are of one server, in turn.
 */
import { join } from 'node:path'
import { CHAT_MODEL } from '../harness/chat-backend.ts'
import { connectionCases, loadSuite } from '../harness/load-suite.ts'
import { requestTo } from '../harness/runyard.ts'
import { balancedServer } from './gateway.ts'

const BACKEND = join(import.meta.dirname, '../harness/chat-backend.ts')
const CHAT = '/v1/chat/completions'
const OWN = 'own address'

/** See the head of this file. */
export const models = loadSuite({
  name: 'models',
  title: 'A chat at /openai/v1 and at the addresses of its endpoint: 2 KB there, 1 KB back, one worker behind it',
  notes:
    'The first side goes to a path whose answers are not read for tokens, so its processor time shows what that costs.',
  loads: connectionCases(1, 32),
  baseline: OWN,
  compares: 'p50',
  async start(bench, wants) {
    const { server, id } = await balancedServer(bench, {}, BACKEND)
    const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'x'.repeat(2_000) }] })
    const paths: readonly (readonly [name: string, path: string, model: string])[] = [
      ['own address, no tokens read', `/lb/${id}/v1/things`, CHAT_MODEL],
      [OWN, `/lb/${id}${CHAT}`, CHAT_MODEL],
      ['OpenAI route of the endpoint', `/v2/${id}/openai${CHAT}`, CHAT_MODEL],
      ['/openai/v1', `/openai${CHAT}`, 'bench'],
    ]
    const base = { port: server.port, pids: [server.pid], isAlone: true }
    const sides = paths.map(([name, path, model]) => ({ ...base, name, request: requestTo(server, path, chat(model)) }))
    return sides.filter(({ name }) => wants(name))
  },
})
