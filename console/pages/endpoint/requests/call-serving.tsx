/** Commands for a load-balancing endpoint. The console never calls it: foreign code would answer. */
import type { Endpoint } from '../../../client/api-types.d.ts'
import { Code, Section } from '../../../parts/basic.tsx'
import { quoted } from './run-call.ts'

/** Commands that call a load-balancing endpoint. */
export function HowToCall({ endpoint }: { readonly endpoint: Endpoint }) {
  const { base, health } = endpoint.requestUrls as { readonly base: string; readonly health: string }
  const authorization = `-H "Authorization: Bearer $RUNYARD_API_KEY"`
  const root = base.replace(/(?<!\/)\/+$/, '')
  const post = [
    `curl -sS ${quoted(`${root}/`)}`,
    authorization,
    "-H 'Content-Type: application/json'",
    `-d '{"prompt": "Hello"}'`,
  ]
  return (
    <Section title="How to call this endpoint">
      <p>
        Requests go straight to the workers of this endpoint, so it has no list of jobs. Its paths and responses are
        those of the server in its workers.
      </p>
      <h3>Get a page</h3>
      <Code text={`curl -sS ${quoted(`${root}/`)} \\\n  ${authorization}`} />
      <h3>Send JSON</h3>
      <Code text={post.join(' \\\n  ')} />
      <h3>Numbers of requests and workers</h3>
      <Code text={`curl -sS ${quoted(health)} \\\n  ${authorization}`} />
    </Section>
  )
}
