/** Filters of a list that the address of its page has. */
import { useEffect, useState } from 'preact/hooks'
import { query, setQuery } from '../router.ts'

/** Time after the last key until the list is read with a text, in milliseconds. */
const TYPED_MS = 250

/**
 * A text in the query of the page.
 * @param valid the text as the list is filtered by it, where that is not simply the one of the address
 * @param isSearch true for the field that the key `/` leads to
 */
export function QueryText({
  name,
  label,
  valid = query.value.get(name),
  maxLength = 200,
  className,
  isSearch = false,
}: {
  readonly name: string
  readonly label: string
  readonly valid?: string | null
  readonly maxLength?: number
  readonly className?: string
  readonly isSearch?: boolean
}) {
  const value = valid ?? ''
  const [text, setText] = useState(value)
  useEffect(() => {
    if (text.trim() !== value) setText(value)
  }, [value])
  const apply = () => setQuery({ [name]: text.trim() || null })
  useEffect(() => {
    if (text.trim() === value) return
    const timer = setTimeout(apply, TYPED_MS)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <input
      type="search"
      class={className}
      aria-label={label}
      placeholder={label}
      maxLength={maxLength}
      value={text}
      onInput={event => setText(event.currentTarget.value)}
      // A typed text counts as soon as the focus moves on to a button.
      onChange={apply}
      {...(isSearch ? { 'data-search': '' } : {})}
    />
  )
}

/** One of several values in the query of the page. @param all the title of the choice without a value */
export function QuerySelect({
  name,
  label,
  all,
  options,
}: {
  readonly name: string
  readonly label: string
  readonly all: string
  readonly options: readonly (readonly [string, string])[]
}) {
  const value = query.value.get(name) ?? ''
  return (
    <select
      aria-label={label}
      value={value}
      onChange={event => setQuery({ [name]: event.currentTarget.value || null })}
    >
      <option value="">{all}</option>
      {value === '' || options.some(([one]) => one === value) ? null : <option value={value}>{value}</option>}
      {options.map(([option, title]) => (
        <option key={option} value={option}>
          {title}
        </option>
      ))}
    </select>
  )
}
