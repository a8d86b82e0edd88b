/** The key that opens an endpoint alone, and the one that signs its webhooks. */
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint } from '../../../client/api-types.d.ts'
import { mayUseJobs } from '../../../client/session.ts'
import { announce } from '../../../parts/announce.tsx'
import { Button, Code, Section } from '../../../parts/basic.tsx'
import { Confirm, Dialog } from '../../../parts/dialog.tsx'

/** Keys of an endpoint. */
export function EndpointKeys({ endpoint: { id, type } }: { readonly endpoint: Endpoint }) {
  const [dialog, setDialog] = useState<'endpoint' | 'webhook' | null>(null)
  const [key, setKey] = useState<string | null>(null)
  const [webhookKey, setWebhookKey] = useState<string | null>(null)
  const readWebhookKey = async () =>
    setWebhookKey((await api('GET /v2/{endpoint}/webhook-key', { path: { endpoint: id } })).key)
  const rotateWebhookKey = async () => {
    setWebhookKey((await api('POST /v2/{endpoint}/webhook-key', { path: { endpoint: id } })).key)
    announce('Webhooks are signed with a new key')
  }
  return (
    <Section title="Keys">
      {mayUseJobs('write', id) ? (
        <div class="danger-row">
          <p>
            <b>Endpoint key</b>
            <br />
            <span class="faint">Opens the operations of this endpoint and nothing else.</span>
          </p>
          <Button onPress={() => setDialog('endpoint')}>Rotate endpoint key</Button>
        </div>
      ) : null}
      {type === 'QUEUE' ? (
        <div class="danger-row">
          <p>
            <b>Webhook key</b>
            <br />
            <span class="faint">Signs the webhooks, so that receivers can verify them.</span>
          </p>
          <span class="actions">
            {webhookKey === null ? (
              <Button onPress={readWebhookKey}>Show webhook key</Button>
            ) : (
              <Button onPress={() => setWebhookKey(null)}>Hide webhook key</Button>
            )}
            <Button onPress={() => setDialog('webhook')}>Rotate webhook key</Button>
          </span>
        </div>
      ) : null}
      {webhookKey === null ? null : <Code text={webhookKey} what="webhook key" />}
      {dialog === 'endpoint' ? (
        <Confirm
          title="Rotate the endpoint key?"
          action="Rotate endpoint key"
          onConfirm={async () => setKey((await api('POST /v2/serverless/{id}/rotate-key', { path: { id } })).key)}
          onClose={() => setDialog(null)}
        >
          <p>The previous key stops working, and calls that it holds open end.</p>
        </Confirm>
      ) : null}
      {dialog === 'webhook' ? (
        <Confirm
          title="Rotate the webhook key?"
          action="Rotate webhook key"
          onConfirm={rotateWebhookKey}
          onClose={() => setDialog(null)}
        >
          <p>Webhooks are signed with the new key from the next try on. Receivers need it.</p>
        </Confirm>
      ) : null}
      {key === null ? null : (
        <Dialog title="The new endpoint key" onClose={() => setKey(null)}>
          <p>It is shown only once.</p>
          <Code text={key} what="endpoint key" />
        </Dialog>
      )}
    </Section>
  )
}
