/** The environment of workers: a row for each variable, with references to secrets. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { changeTopic } from '../../client/topics.ts'
import { plural } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Button, Empty, Loaded } from '../../parts/basic.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { type Problems, TextField } from '../../parts/form.tsx'
import { AreaField } from './bound.tsx'
import { parseEnv, repeatedNames, secretReference, secretsIn, type Variable, withVariables } from './env-text.ts'
import { problemsAt } from './parts.tsx'

const MAX_SECRETS_SHOWN = 50

/** Rows of variables. */
export function EnvRows({
  value,
  onChange,
  problems,
}: {
  readonly value: readonly Variable[]
  readonly onChange: (value: readonly Variable[]) => void
  readonly problems: Problems
}) {
  const [picking, setPicking] = useState<number | null>(null)
  const change = (index: number, changes: Partial<Variable>) =>
    onChange(value.map((one, of) => (of === index ? { ...one, ...changes } : one)))
  const add = (text: string) => {
    const { variables, problems: wrong } = parseEnv(text)
    onChange(withVariables(value, variables))
    announce([`Added ${plural(variables.length, 'variable')}.`, ...wrong.slice(0, 3)].join(' '), rowKind(wrong))
  }
  const paste = (event: ClipboardEvent) => {
    const text = event.clipboardData?.getData('text') ?? ''
    if (!text.includes('=')) return
    event.preventDefault()
    add(text)
  }
  const secretNames = [...new Set(value.flatMap(one => secretsIn(one.value)))]
  const secrets = useSecrets(secretNames.length > 0).data
  // Secrets of later pages are missing from this list.
  const isWhole = secrets !== null && !secrets.pagination.hasNextPage
  const missing = isWhole ? secretNames.filter(name => secrets.secrets.every(secret => secret.name !== name)) : []
  const wrong = [
    ...problemsAt(problems, '$.env'),
    ...repeatedNames(value).map(name => `${name} is given twice`),
    ...missing.map(name => `The secret ${name} does not exist: workers do not start without it`),
  ]
  return (
    <fieldset class="ticks env">
      <legend>Environment</legend>
      {value.map((variable, index) => (
        // A row has no stable name while it is typed.
        <div key={index} class="env-row">
          <input
            aria-label={`Name of variable ${index + 1}`}
            placeholder="NAME"
            value={variable.name}
            spellcheck={false}
            autocomplete="off"
            onInput={event => change(index, { name: event.currentTarget.value })}
            onPaste={paste}
          />
          <textarea
            rows={Math.min(6, variable.value.split('\n', 6).length)}
            aria-label={`Value of ${variable.name || `variable ${index + 1}`}`}
            value={variable.value}
            spellcheck={false}
            onInput={event => change(index, { value: event.currentTarget.value })}
          />
          <Button onPress={() => setPicking(index)} aria-label={`Insert a secret into ${variable.name || 'the value'}`}>
            Secret
          </Button>
          <Button
            kind="quiet"
            aria-label={`Remove ${variable.name || `variable ${index + 1}`}`}
            onPress={() => onChange(value.filter((_, of) => of !== index))}
          >
            ✕
          </Button>
        </div>
      ))}
      {wrong.map(sentence => (
        <p key={sentence} class="wrong">
          {sentence}
        </p>
      ))}
      <div class="tools">
        <Button onPress={() => onChange([...value, { name: '', value: '' }])}>Add variable</Button>
        <PasteEnv onAdd={add} />
      </div>
      {picking === null ? null : (
        <SecretPicker
          onClose={() => setPicking(null)}
          onPick={name => {
            change(picking, { value: (value[picking]?.value ?? '') + secretReference(name) })
            setPicking(null)
          }}
        />
      )}
    </fieldset>
  )
}

function rowKind(wrong: readonly string[]): 'done' | 'problem' {
  return wrong.length === 0 ? 'done' : 'problem'
}

function PasteEnv({ onAdd }: { readonly onAdd: (text: string) => void }) {
  const [text, setText] = useState<string | null>(null)
  if (text === null) return <Button onPress={() => setText('')}>Paste a .env text</Button>
  const add = () => {
    onAdd(text)
    setText(null)
  }
  return (
    <Dialog
      title="Variables from a .env text"
      onClose={() => setText(null)}
      actions={
        <Button kind="main" onPress={add} disabled={text.trim() === ''}>
          Add variables
        </Button>
      }
    >
      <AreaField
        label="Text"
        rows={10}
        value={text}
        onChange={setText}
        placeholder={'MODEL=small\nTOKEN="abc"'}
        hint="One NAME=value on each line. An existing variable receives the new value."
      />
    </Dialog>
  )
}

function useSecrets(isNeeded: boolean) {
  return useResource(isNeeded ? 'form secrets' : null, signal => api('GET /v2/account/secrets', { signal }), {
    on: changeTopic(/Secret$/i),
  })
}

function SecretPicker({ onPick, onClose }: { readonly onPick: (name: string) => void; readonly onClose: () => void }) {
  const [search, setSearch] = useState('')
  const secrets = useSecrets(true)
  return (
    <Dialog title="Insert a secret" onClose={onClose}>
      <p class="hint">The variable gets a reference. Workers receive the value of the secret when they start.</p>
      <TextField label="Search" type="search" value={search} onChange={setSearch} />
      <Loaded of={secrets}>
        {({ secrets: all }) => {
          const matches = all.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase()))
          if (matches.length === 0)
            return (
              <Empty title={all.length === 0 ? 'No secrets yet' : 'No secret matches'}>
                <a href="/secrets" target="_blank" rel="noreferrer">
                  Make one
                </a>
              </Empty>
            )
          return (
            <ul class="picks">
              {matches.slice(0, MAX_SECRETS_SHOWN).map(({ id, name, description }) => (
                <li key={id}>
                  <Button onPress={() => onPick(name)}>{name}</Button> <span class="faint">{description}</span>
                </li>
              ))}
              {matches.length > MAX_SECRETS_SHOWN ? <li class="faint">Search for the others.</li> : null}
            </ul>
          )
        }}
      </Loaded>
    </Dialog>
  )
}
