/** Fields that are bound to members of a draft, so that a form names each member once. */
import type { ComponentChildren } from 'preact'
import { Field, type Problems, SelectField, TextField } from '../../parts/form.tsx'

/** Properties of parts of a form. */
export interface FieldsProps<Type> {
  readonly draft: Type
  readonly set: (changes: Partial<Type>) => void
  readonly problems: Problems
}

/** Names of the members that are texts in the draft. */
type TextName<Type> = { readonly [Name in keyof Type]: Type[Name] extends string ? Name : never }[keyof Type] & string

interface Options {
  /** Member of the body, if its name differs from that in the draft. */
  readonly path?: string
  readonly hint?: ComponentChildren
  readonly placeholder?: string
}

/** Makers of fields, each for a member of the draft. */
export function bound<Type extends object>({ draft, set, problems }: FieldsProps<Type>) {
  const of = (name: TextName<Type>, { path = name, hint }: Options) => ({
    path: `$.${path}`,
    problems,
    hint,
    value: String(draft[name]),
    onChange: (value: string) => set({ [name]: value } as unknown as Partial<Type>),
  })
  return {
    text: (name: TextName<Type>, label: string, options: Options = {}) => (
      <TextField label={label} {...of(name, options)} placeholder={options.placeholder} />
    ),
    /** A field for a number, which is a text in the draft. */
    number: (
      name: TextName<Type>,
      label: string,
      [min, max, step = 1]: readonly [number, number, (number | 'any')?],
      options: Options = {},
    ) => {
      const { value, onChange, ...field } = of(name, options)
      return (
        <Field label={label} {...field}>
          {attributes => (
            <input
              {...attributes}
              type="number"
              {...{ value, min, max, step }}
              onInput={event => onChange(event.currentTarget.value)}
            />
          )}
        </Field>
      )
    },
    select: (
      name: TextName<Type>,
      label: string,
      options: readonly (readonly [string, string])[],
      fieldOptions: Options & { readonly onChange?: (value: string) => void } = {},
    ) => {
      const { onChange, ...field } = of(name, fieldOptions)
      const value = field.value
      // A value that is no longer an option is shown, so that looking at it does not change it.
      const all = options.some(([option]) => option === value) ? options : [...options, [value, value] as const]
      return <SelectField label={label} {...field} options={all} onChange={fieldOptions.onChange ?? onChange} />
    },
    lines: (name: TextName<Type>, label: string, options: Options = {}) => (
      <AreaField label={label} {...of(name, options)} placeholder={options.placeholder} />
    ),
  }
}

/** A field with several lines. */
export function AreaField({
  value,
  onChange,
  rows = 2,
  placeholder,
  ...field
}: {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly path?: string
  readonly problems?: Problems
  readonly value: string
  readonly onChange: (value: string) => void
  readonly rows?: number
  readonly placeholder?: string | undefined
}) {
  return (
    <Field {...field}>
      {attributes => (
        <textarea
          {...attributes}
          class="json"
          {...{ rows, value, placeholder }}
          spellcheck={false}
          onInput={event => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}
