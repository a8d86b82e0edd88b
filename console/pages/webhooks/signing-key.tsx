/** The key that signs the webhooks of an endpoint, and the check that a receiver makes. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import { dateTime } from '../../format.ts'
import { Button, Code, Section } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'

const VERIFY = `import { createHmac, timingSafeEqual } from 'node:crypto'

// body: as it came, before any parsing
export function isGenuine(headers, body, key) {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false
  const secret = Buffer.from(key.replace('whsec_', ''), 'base64')
  const wanted = createHmac('sha256', secret).update(\`\${id}.\${timestamp}.\`).update(body).digest()
  return signatures.split(' ').some(signature => {
    const given = Buffer.from(signature.replace('v1,', ''), 'base64')
    return given.length === wanted.length && timingSafeEqual(given, wanted)
  })
}`

interface Key {
  readonly key: string
  readonly createdAt: string
}

/** The signing key, shown on demand. The page stores it nowhere else. */
export function SigningKey({ endpoint }: { readonly endpoint: string }) {
  const [key, setKey] = useState<Key | null>(null)
  const [isRotating, setRotating] = useState(false)
  const path = { endpoint }
  return (
    <Section
      title="Signing key"
      actions={
        <div class="actions">
          {key === null ? (
            <Button onPress={async () => setKey(await api('GET /v2/{endpoint}/webhook-key', { path }))}>
              Show the key
            </Button>
          ) : (
            <Button onPress={() => setKey(null)}>Hide the key</Button>
          )}
          <Button onPress={() => setRotating(true)}>Create a new key</Button>
        </div>
      }
    >
      <p>
        A receiver verifies with it that a call comes from this server. Libraries for Standard Webhooks accept it as it
        is.
      </p>
      {key === null ? null : (
        <>
          <Code text={key.key} what="signing key" />
          <p class="hint">Made {dateTime(key.createdAt)}</p>
        </>
      )}
      <details>
        <summary>Verification without a library, in JavaScript</summary>
        <Code text={VERIFY} what="example" />
      </details>
      <p class="hint">
        A receiver should answer with a status of 200 to 299 within 10 s, before its work. It can be called twice with
        the same <code>webhook-id</code>.
      </p>
      {isRotating ? (
        <Confirm
          title="Create a new signing key?"
          action="Create a new key"
          onClose={() => setRotating(false)}
          onConfirm={async () => setKey(await api('POST /v2/{endpoint}/webhook-key', { path }))}
        >
          <p>The new key signs from the next try on. Receivers refuse calls until they have it.</p>
        </Confirm>
      ) : null}
    </Section>
  )
}
