/** The rights of a key, as fields. */
import { useEffect, useState } from 'preact/hooks'
import type { Endpoint, KeyScope } from '../../client/api-types.d.ts'
import { mayOperate, who } from '../../client/session.ts'
import { plural } from '../../format.ts'
import { Button } from '../../parts/basic.tsx'
import { Field, isAt, type Problems, SelectField } from '../../parts/form.tsx'
import { readModels } from '../playground/models.ts'
import { type Level, modelNames, type ScopeDraft } from './scope.ts'

const MAX_SHOWN = 100
/** Limits of models to choose from, and of characters of their names; others are typed. */
const OFFERED = { count: 12, characters: 48 } as const

/** Path of the problems that the field of models shows. */
const MODELS = '$.scope.models'

const LEVELS: readonly (readonly [Level, string])[] = [
  ['none', 'Nothing'],
  ['read', 'Read'],
  ['write', 'Read and write'],
]

const METRICS: readonly (readonly [ScopeDraft['metrics'], string])[] = [
  ['none', 'Nothing'],
  ['read', 'Read'],
]

const TYPES: readonly (readonly [KeyScope['type'], string])[] = [
  ['all', 'Everything'],
  ['read-only', 'Read everything'],
  ['restricted', 'Only the rights below'],
]

/** Edits a scope. Kinds that have more rights than the key of the session are left out. */
export function ScopeField({
  scope,
  endpoints,
  problems,
  onChange,
}: {
  readonly scope: ScopeDraft
  readonly endpoints: readonly Endpoint[]
  readonly problems: Problems
  readonly onChange: (scope: ScopeDraft) => void
}) {
  const ownType = who.value?.scope.type
  const types = TYPES.filter(
    ([type]) => ownType === 'all' || (type !== 'all' && (type === 'restricted' || ownType === type)),
  )
  return (
    <>
      <SelectField<KeyScope['type']>
        label="The key may"
        path="$.scope"
        problems={without(problems, MODELS)}
        value={scope.type}
        options={types}
        onChange={type => onChange({ ...scope, type })}
        {...(scope.type === 'all' ? { hint: 'The holder of such a key can do all that you can.' } : {})}
      />
      {scope.type === 'restricted' ? (
        <>
          <SelectField<Level>
            label="Management"
            value={scope.management}
            options={LEVELS}
            onChange={management => onChange({ ...scope, management })}
            hint="Endpoints, templates, secrets, volumes, keys."
          />
          <SelectField<Level | 'each'>
            label="Jobs"
            value={scope.jobs}
            options={[...LEVELS.map(([level, title]) => [level, title] as const), ['each', 'By endpoint']]}
            onChange={jobs => onChange({ ...scope, jobs })}
            hint="Write includes submit, cancel and retry, and requests to load-balancing endpoints."
          />
          {scope.jobs === 'each' ? <ByEndpoint scope={scope} endpoints={endpoints} onChange={onChange} /> : null}
          <Models scope={scope} problems={problems} onChange={onChange} />
          {mayOperate() || scope.metrics === 'read' ? (
            <SelectField<ScopeDraft['metrics']>
              label="Metrics of the server"
              value={scope.metrics}
              options={METRICS}
              onChange={metrics => onChange({ ...scope, metrics })}
              hint="For Prometheus: /metrics and the status of the server, with the endpoints of all accounts."
            />
          ) : null}
          <SelectField<Level | 'each'>
            label="Files of network volumes"
            value={scope.files}
            options={[...LEVELS, ...(scope.files === 'each' ? [['each', 'By volume'] as const] : [])]}
            onChange={files => onChange({ ...scope, files })}
            hint="Over S3, with the pair of keys that the new key has."
          />
        </>
      ) : null}
    </>
  )
}

function without(problems: Problems, path: string): Problems {
  return Object.fromEntries(Object.entries(problems).filter(([of]) => !isAt(path, of)))
}

/** Names of models that the key calls, besides all models of its endpoints. */
function Models({
  scope,
  problems,
  onChange,
}: {
  readonly scope: ScopeDraft
  readonly problems: Problems
  readonly onChange: (scope: ScopeDraft) => void
}) {
  const [known, setKnown] = useState<readonly string[]>([])
  useEffect(() => {
    const gone = new AbortController()
    // Without the list the names are typed.
    readModels(gone.signal).then(
      models => setKnown(models.map(({ name }) => name)),
      () => {},
    )
    return () => gone.abort()
  }, [])
  const named = modelNames(scope.models)
  const offered = known
    .filter(name => !named.includes(name) && name.length <= OFFERED.characters)
    .slice(0, OFFERED.count)
  const add = (name: string) => onChange({ ...scope, models: [...named, name].join('\n') })
  const hint =
    scope.jobs === 'write'
      ? 'The jobs of all endpoints include all their models: choose another level of jobs to limit the key to names.'
      : 'As clients write them in “model”, one a line, also other names and single models of an endpoint. The key calls them at /openai/v1 alone.'
  return (
    <>
      <Field label="Models" path={MODELS} problems={problems} hint={hint}>
        {attributes => (
          <textarea
            {...attributes}
            rows={Math.min(6, named.length + 2)}
            value={scope.models}
            placeholder="gpt-4o"
            spellcheck={false}
            autocomplete="off"
            onInput={event => onChange({ ...scope, models: event.currentTarget.value })}
          />
        )}
      </Field>
      {offered.length === 0 || scope.jobs === 'write' ? null : (
        <p class="tools">
          {offered.map(name => (
            <Button key={name} aria-label={`Add the model ${name}`} onPress={() => add(name)}>
              {name}
            </Button>
          ))}
        </p>
      )}
    </>
  )
}

function ByEndpoint({
  scope,
  endpoints,
  onChange,
}: {
  readonly scope: ScopeDraft
  readonly endpoints: readonly Endpoint[]
  readonly onChange: (scope: ScopeDraft) => void
}) {
  const [sought, setSought] = useState('')
  const matches = endpoints.filter(({ id, name }) => `${name} ${id}`.toLowerCase().includes(sought.toLowerCase()))
  const chosenCount = endpoints.filter(({ id }) => (scope.byEndpoint[id] ?? 'none') !== 'none').length
  return (
    <div class="field">
      <div class="tools">
        <input
          type="search"
          aria-label="Search endpoints"
          placeholder="Search endpoints"
          value={sought}
          onInput={event => setSought(event.currentTarget.value)}
        />
        <span class="faint" role="status">
          {plural(chosenCount, 'endpoint')} chosen
        </span>
      </div>
      <div class="levels">
        {matches.slice(0, MAX_SHOWN).map(({ id, name }) => (
          <label key={id}>
            <span title={id}>{name}</span>
            <select
              value={scope.byEndpoint[id] ?? 'none'}
              onChange={event =>
                onChange({
                  ...scope,
                  byEndpoint: { ...scope.byEndpoint, [id]: event.currentTarget.value as Level },
                })
              }
            >
              {LEVELS.map(([level, title]) => (
                <option key={level} value={level}>
                  {title}
                </option>
              ))}
            </select>
          </label>
        ))}
      </div>
      {matches.length > MAX_SHOWN ? (
        <p class="hint">{plural(matches.length - MAX_SHOWN, 'endpoint')} more; search to see them.</p>
      ) : null}
    </div>
  )
}
