/** Replaces a key: a new one with the same rights and limits, and an end of the old one. */
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { useEndpoints } from '../../client/uses.ts'
import { announce } from '../../parts/announce.tsx'
import { Ask } from '../../parts/ask.tsx'
import { serverNow } from '../../server-clock.ts'
import { createdText, OVERLAPS, oldKeyEnd, replacedName, successor } from './rotation.ts'

/** The form. */
export function RotateKey({
  of,
  onClose,
  onDone,
}: {
  readonly of: ApiKey
  readonly onClose: () => void
  /** Called with the new key. */
  readonly onDone: (key: string) => void
}) {
  const endpoints = useEndpoints().data
  const namesVolumes = of.scope.type === 'restricted' && typeof of.scope.files === 'object'
  const onVolume = changeTopic(/volume/i)
  const network = useAll('GET /v2/network-volumes', 'networkVolumes', onVolume, namesVolumes).data
  const global = useAll('GET /v2/global-volumes', 'globalVolumes', onVolume, namesVolumes).data
  const isOwn = of.id === who.value?.keyId
  // A session ends with its key, and nobody could read the new one.
  const options = isOwn ? OVERLAPS.filter(([value]) => value !== '0') : OVERLAPS
  return (
    <Ask
      title={`Rotate the key ${of.name}`}
      action="Create the new key"
      asked={[
        {
          name: 'overlap',
          label: 'The old key',
          value: isOwn ? '3600000' : '86400000',
          options,
          hint: 'Long enough for all programs to get the new one.',
        },
      ]}
      isReady={endpoints !== null && (!namesVolumes || (network !== null && global !== null))}
      note={
        <p>
          The new key has the same name, rights and limits, and is shown once.
          {isOwn ? ' You are signed in with the old one: sign in again with the new one.' : ''}
        </p>
      }
      act={async ({ overlap }) => {
        const created = await api('POST /v2/account/keys', {
          body: successor(of, {
            endpoint: id => endpoints?.some(one => one.id === id) === true,
            volume: id => [...(network ?? []), ...(global ?? [])].some(one => one.id === id),
          }),
        })
        try {
          await endOldKey(of, Number(overlap))
        } catch (error) {
          announce(`The old key still works: ${(error as Error).message}`, 'problem')
        }
        onDone(createdText(created))
      }}
      onClose={onClose}
    />
  )
}

async function endOldKey({ id, name, expiresAt }: ApiKey, overlapMs: number): Promise<void> {
  if (overlapMs === 0) await api('DELETE /v2/account/keys/{id}', { path: { id } })
  else {
    const body = { name: replacedName(name), expiresAt: oldKeyEnd(expiresAt, serverNow() + overlapMs) }
    await api('PATCH /v2/account/keys/{id}', { path: { id }, body })
  }
}
