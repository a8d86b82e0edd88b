/** Fields that only the form of an endpoint has. */
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { isAt, type Problems } from '../../parts/form.tsx'
import type { Difference } from './difference.ts'

interface Labelled {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly path?: string
  readonly problems?: Problems
}

/** Checkboxes, each for a value of a list. */
export function TickList({
  label,
  options,
  values,
  onChange,
  path,
  problems = {},
  hint,
}: Labelled & {
  readonly options: readonly (readonly [string, ComponentChildren])[]
  readonly values: readonly string[]
  readonly onChange: (values: readonly string[]) => void
}) {
  const id = useId()
  // A value that is no longer an option stays, so that it can be removed.
  const unlistedValues = values.filter(value => options.every(([option]) => option !== value))
  const toggle = (value: string) =>
    onChange(values.includes(value) ? values.filter(one => one !== value) : [...values, value])
  return (
    <fieldset class="ticks">
      <legend>{label}</legend>
      <div class="tick-list">
        {[...options, ...unlistedValues.map(value => [value, value] as const)].map(([value, title]) => (
          <label key={value} for={`${id}-${value}`}>
            <input
              id={`${id}-${value}`}
              type="checkbox"
              checked={values.includes(value)}
              onChange={() => toggle(value)}
            />{' '}
            <span>{title}</span>
          </label>
        ))}
      </div>
      {problemsAt(problems, path).map(sentence => (
        <p key={sentence} class="wrong">
          {sentence}
        </p>
      ))}
      {hint === undefined ? null : <p class="hint">{hint}</p>}
    </fieldset>
  )
}

/** Rarely needed parts of a form; open if a field in them has a problem. */
export function Folded({
  title,
  isWrong = false,
  children,
}: {
  readonly title: string
  readonly isWrong?: boolean
  readonly children: ComponentChildren
}) {
  return (
    <details class="folded" {...(isWrong ? { open: true } : {})}>
      <summary>{title}</summary>
      <div class="folded-content">{children}</div>
    </details>
  )
}

/** The problems of a member and of everything below it. */
export function problemsAt(problems: Problems, path: string | undefined): readonly string[] {
  if (path === undefined) return []
  return Object.entries(problems)
    .filter(([of]) => isAt(path, of))
    .flatMap(([, sentences]) => sentences)
}

/** Paths of problems that are shown at one of the fields. */
export function shownAt(problems: Problems, fields: readonly string[]): readonly string[] {
  return Object.keys(problems).filter(of => fields.some(path => isAt(path, of)))
}

/** The members of a configuration, for keys that may not change it. */
export function Facts({ of }: { readonly of: readonly (readonly [string, string])[] }) {
  return (
    <dl class="facts">
      {of.map(([field, value]) => (
        <div key={field} class="fact">
          <dt>
            <code>{field}</code>
          </dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Members that differ, each with its old and its new value. */
export function DifferenceList({
  of,
  label,
  marked = [],
  names = ['Before', 'After'],
}: {
  readonly of: readonly Difference[]
  readonly label: string
  /** Fields that somebody else changed too. */
  readonly marked?: readonly string[]
  readonly names?: readonly [string, string]
}) {
  return (
    <div class="differences" role="table" aria-label={label}>
      <div role="row" class="sr">
        {['Setting', ...names].map(name => (
          <span key={name} role="columnheader">
            {name}
          </span>
        ))}
      </div>
      {of.map(one => (
        <div key={one.field} role="row">
          <span role="rowheader">
            <code>{one.field}</code>
            {marked.includes(one.field) ? <b class="wrong"> changed by both</b> : null}
          </span>
          <Side sign="−" value={one.old} />
          <Side sign="+" value={one.new} />
        </div>
      ))}
    </div>
  )
}

function Side({ sign, value }: { readonly sign: '−' | '+'; readonly value: string | null }) {
  return (
    <span role="cell" class={sign === '+' ? 'new' : 'old'}>
      {value === null ? (
        <span class="faint">none</span>
      ) : (
        <>
          <span aria-hidden="true">{sign} </span>
          <code>{value === '' ? '(empty)' : value.length > 600 ? `${value.slice(0, 600)}…` : value}</code>
        </>
      )}
    </span>
  )
}
