/** Makes another name for models, or changes the endpoints of one. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { ModelAlias } from '../../client/api-types.d.ts'
import { useEndpoints } from '../../client/uses.ts'
import { Ask } from '../../parts/ask.tsx'
import { isAt, type Problems, SelectField } from '../../parts/form.tsx'

/** Limit of the endpoints of one name. */
const MAX_ENDPOINTS = 10

/** The form. @param of the name to change; a new one unless given */
export function AliasForm({
  of,
  onClose,
  onDone,
}: {
  readonly of?: ModelAlias
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const [chosen, setChosen] = useState<readonly string[]>(of?.endpoints.map(({ id }) => id) ?? [])
  return (
    <Ask
      title={of === undefined ? 'New name for models' : `Change ${of.name}`}
      action="Save the name"
      asked={
        of !== undefined
          ? []
          : [{ name: 'name', label: 'Name', placeholder: 'gpt-4o', hint: 'As clients write it in “model”.' }]
      }
      isReady={chosen.length > 0}
      more={problems => <Order chosen={chosen} problems={problems} onChange={setChosen} />}
      act={async ({ name = '' }) => {
        await api('PUT /v2/account/model-aliases', { body: { name: of?.name ?? String(name), endpoints: [...chosen] } })
        onDone()
      }}
      onClose={onClose}
    />
  )
}

/** Endpoints in order of preference, with a field for one more. */
function Order({
  chosen,
  problems,
  onChange,
}: {
  readonly chosen: readonly string[]
  readonly problems: Problems
  readonly onChange: (chosen: readonly string[]) => void
}) {
  const endpoints = useEndpoints().data ?? []
  const set = (at: number, id: string) =>
    onChange([...chosen.slice(0, at), id, ...chosen.slice(at + 1)].filter(Boolean))
  const rest = Object.fromEntries(Object.entries(problems).filter(([path]) => isAt('$.endpoints', path)))
  return (
    <>
      <p class="hint">The first endpoint that is ready answers; if none is, the first of all starts a worker.</p>
      {[...chosen, ''].slice(0, MAX_ENDPOINTS).map((id, at) => (
        <SelectField
          key={at}
          label={at === 0 ? 'Endpoint' : `Else ${at === 1 ? '' : `(${at}) `}`.trim()}
          value={id}
          {...(at === 0 ? { path: '$.endpoints', problems: rest } : {})}
          options={[
            ['', at === 0 ? 'Choose one' : 'No other'],
            ...endpoints
              .filter(one => one.id === id || !chosen.includes(one.id))
              .map(one => [one.id, `${one.name} (${one.id})`] as const),
          ]}
          onChange={next => set(at, next)}
        />
      ))}
    </>
  )
}
