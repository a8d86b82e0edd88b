/** JSON for reading. */
import { bytes } from '../format.ts'
import { Code } from './basic.tsx'

/** Limit of characters that are shown; the copy has all. */
const MAX_SHOWN = 200_000

/** A JSON value, indented. */
export function JsonView({ value, what }: { readonly value: unknown; readonly what: string }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null')
  if (text.length <= MAX_SHOWN) return <Code text={text} what={what} />
  return (
    <>
      <p class="hint">{bytes(text.length)}; only the beginning is shown</p>
      <Code text={text.slice(0, MAX_SHOWN)} what={`beginning of the ${what}`} />
    </>
  )
}
