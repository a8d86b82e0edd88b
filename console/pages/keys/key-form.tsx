/** Creates a key, or changes the rights of one. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { mayOperate } from '../../client/session.ts'
import { useEndpoints } from '../../client/uses.ts'
import { Ask } from '../../parts/ask.tsx'
import { CheckField, type Problems, TextField } from '../../parts/form.tsx'
import { localTime, readInstant } from './expiry.ts'
import { changedLimits, draftFromLimits, LIMITS, type LimitsDraft } from './limits.ts'
import type { MadeKey } from './rotation.ts'
import { draftFromScope, NEW_SCOPE, scopeFromDraft } from './scope.ts'
import { ScopeField } from './scope-field.tsx'

/** The form of a key. @param of the key to change; a new one unless given */
export function KeyForm({
  of,
  onClose,
  onDone,
}: {
  readonly of?: ApiKey
  readonly onClose: () => void
  /** Called with a new key, and with null after a change. */
  readonly onDone: (key: MadeKey | null) => void
}) {
  const endpoints = useEndpoints().data ?? []
  const [scope, setScope] = useState(of === undefined ? NEW_SCOPE : draftFromScope(of.scope))
  const [limits, setLimits] = useState(draftFromLimits(of?.limits))
  const [isAccounting, setAccounting] = useState(of?.accounting ?? false)
  const keyScope = scopeFromDraft(scope, id => endpoints.some(one => one.id === id))
  return (
    <Ask
      title={of === undefined ? 'New key' : `Change the key ${of.name}`}
      action={of === undefined ? 'Create the key' : 'Save the changes'}
      asked={[
        {
          name: 'name',
          label: 'Name',
          value: of?.name ?? '',
          hint: 'For people: the person or program that has the key.',
        },
        {
          name: 'expiresAt',
          label: 'It ends',
          type: 'datetime-local',
          value: localTime(of?.expiresAt ?? null),
          hint: 'Empty: never.',
        },
        ...(of === undefined && mayOperate()
          ? [{ name: 'exempt', label: 'Not counted by the limits on requests', type: 'check', value: false } as const]
          : []),
      ]}
      more={problems => (
        <>
          <ScopeField scope={scope} endpoints={endpoints} problems={problems} onChange={setScope} />
          <LimitFields limits={limits} problems={problems} onChange={setLimits} />
          <CheckField
            label="Streams report their tokens"
            value={isAccounting}
            onChange={setAccounting}
            hint="Usage counts the tokens of streams whose programs do not ask for them."
          />
        </>
      )}
      act={async (_, { expiresAt, ...changed }) => {
        // An unchanged member needs no right over it.
        const ofLimits = changedLimits(limits, draftFromLimits(of?.limits))
        const body = {
          ...changed,
          ...(expiresAt === undefined ? {} : { expiresAt: readInstant(String(expiresAt)) }),
          ...(JSON.stringify(keyScope) === JSON.stringify(of?.scope) ? {} : { scope: keyScope }),
          ...(Object.keys(ofLimits).length === 0 ? {} : { limits: ofLimits }),
          ...(isAccounting === (of?.accounting ?? false) ? {} : { accounting: isAccounting }),
        }
        if (of !== undefined) await api('PATCH /v2/account/keys/{id}', { path: { id: of.id }, body })
        onDone(of === undefined ? await api('POST /v2/account/keys', { body: { name: '', ...body } }) : null)
      }}
      onClose={onClose}
    />
  )
}

function LimitFields({
  limits,
  problems,
  onChange,
}: {
  readonly limits: LimitsDraft
  readonly problems: Problems
  readonly onChange: (limits: LimitsDraft) => void
}) {
  return (
    <fieldset class="ticks">
      <legend>Limits on models</legend>
      <div class="limits">
        {LIMITS.map(([name, title]) => (
          <TextField
            key={name}
            label={title}
            type="number"
            path={`$.limits.${name}`}
            problems={problems}
            value={limits[name]}
            onChange={value => onChange({ ...limits, [name]: value })}
          />
        ))}
      </div>
      <p class="hint">Of requests whose answers report tokens. Empty: none.</p>
    </fieldset>
  )
}
