/** Replaces a key: a new one with the same rights and limits, and an end of the old one. */
import { api } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { who } from '../../client/session.ts'
import { Ask } from '../../parts/ask.tsx'
import { type MadeKey, OVERLAPS } from './rotation.ts'

/** The form. */
export function RotateKey({
  of: { id, name },
  onClose,
  onDone,
}: {
  readonly of: ApiKey
  readonly onClose: () => void
  /** Called with the new key. */
  readonly onDone: (key: MadeKey) => void
}) {
  const isOwn = id === who.value?.keyId
  // A session ends with its key, and nobody could read the new one.
  const options = isOwn ? OVERLAPS.filter(([value]) => value !== '0') : OVERLAPS
  return (
    <Ask
      title={`Rotate the key ${name}`}
      action="Create the new key"
      asked={[
        {
          name: 'overlap',
          label: 'The old key',
          value: isOwn ? '3600' : '86400',
          options,
          hint: 'Long enough for all programs to get the new one.',
        },
      ]}
      note={
        <p>
          The new key has the same name, rights and limits, and is shown once.
          {isOwn ? ' You are signed in with the old one: sign in again with the new one.' : ''}
        </p>
      }
      act={async ({ overlap }) => {
        const body = { overlapSeconds: Number(overlap) }
        onDone(await api('POST /v2/account/keys/{id}/rotate', { path: { id }, body }))
      }}
      onClose={onClose}
    />
  )
}
