/** Public SSH keys of the account. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { Ask } from '../../parts/ask.tsx'
import { Button, Loaded, Section } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'

/** The public SSH keys. */
export function SshKeys() {
  const [isNew, setNew] = useState(false)
  const [removed, setRemoved] = useState<string | null>(null)
  const keys = useResource(
    mayManage('read') ? 'ssh keys' : null,
    async signal => (await api('GET /v2/account/ssh-keys', { signal })).keys,
    { on: changeTopic(/ssh|userSettings/i) },
  )
  // The server takes the list as a whole, so the change starts from the present list.
  const change = async (to: (keys: readonly string[]) => string[]) => {
    const now = await api('GET /v2/account/ssh-keys', {})
    await api('PUT /v2/account/ssh-keys', { body: { keys: to(now.keys) } })
    keys.reload()
  }
  return (
    <Section
      title="Public SSH keys"
      actions={mayManage('write') ? <Button onPress={() => setNew(true)}>Add an SSH key</Button> : null}
    >
      <p class="hint">Stored for clients of RunPod. Runyard does not use them.</p>
      <Loaded of={keys}>
        {rows => (
          <ul class="ssh-keys">
            {rows.map(key => (
              <li key={key}>
                <code title={key}>{key}</code>
                {mayManage('write') ? (
                  <Button kind="quiet" onPress={() => setRemoved(key)} aria-label={`Remove ${key}`}>
                    Remove
                  </Button>
                ) : null}
              </li>
            ))}
          </ul>
        )}
      </Loaded>
      {isNew ? (
        <Ask
          title="Add an SSH key"
          action="Add the SSH key"
          asked={[{ name: 'keys', label: 'Public key', placeholder: 'ssh-ed25519 AAAA… name' }]}
          isChange
          act={({ keys: added }) => change(all => [...all, String(added).trim()])}
          onClose={() => setNew(false)}
        />
      ) : null}
      {removed === null ? null : (
        <Confirm
          title="Remove the SSH key?"
          action="Remove the SSH key"
          onClose={() => setRemoved(null)}
          onConfirm={() => change(all => all.filter(one => one !== removed))}
        >
          <p class="ssh-key">
            <code>{removed}</code>
          </p>
        </Confirm>
      )}
    </Section>
  )
}
