/** Variables as texts: the syntax of `.env` files, and references to secrets. */

/** A variable as it is typed. Names may be empty or repeated while somebody types. */
export interface Variable {
  readonly name: string
  readonly value: string
}

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]*$/
/** Limit of lines of one quoted value. */
const MAX_VALUE_LINES = 500
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' }

/** The variables of a `.env` text, and a sentence for each invalid line. */
export function parseEnv(text: string): {
  readonly variables: readonly Variable[]
  readonly problems: readonly string[]
} {
  const lines = text.split(/\r?\n/)
  const variables = new Map<string, string>()
  const problems: string[] = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!.trim()
    if (line === '' || line.startsWith('#')) continue
    const equals = line.indexOf('=')
    const name = line
      .slice(0, Math.max(0, equals))
      .replace(/^export\s+/, '')
      .trim()
    const raw = line.slice(equals + 1).trim()
    if (!NAME.test(name)) {
      problems.push(`Line ${at + 1} has no NAME=value.`)
      continue
    }
    const quoted = /^["']/.test(raw) ? quotedValue(lines, at, raw) : { value: plainValue(raw), end: at }
    if (quoted === null) problems.push(`Line ${at + 1}: the quote has no end.`)
    else {
      variables.set(name, quoted.value)
      at = quoted.end
    }
  }
  return { variables: [...variables].map(([name, value]) => ({ name, value })), problems }
}

/** A value in quotes, which may span several lines. */
function quotedValue(
  lines: readonly string[],
  first: number,
  start: string,
): { readonly value: string; readonly end: number } | null {
  const isPlain = start.startsWith("'")
  const whole = isPlain ? /^'([^']*)'\s*(?:#.*)?$/ : /^"((?:[^"\\]|\\[\s\S])*)"\s*(?:#.*)?$/
  let text = start
  for (let end = first; end < Math.min(lines.length, first + MAX_VALUE_LINES); end += 1) {
    if (end > first) text += `\n${lines[end]!.trimEnd()}`
    const value = whole.exec(text)?.[1]
    if (value === undefined) continue
    return { value: isPlain ? value : value.replaceAll(/\\([\s\S])/g, (_, of: string) => ESCAPES[of] ?? of), end }
  }
  return null
}

function plainValue(raw: string): string {
  const comment = raw.search(/(?:^|\s)#/)
  return (comment === -1 ? raw : raw.slice(0, comment)).trim()
}

/** Variables with others added: one of the same name receives the new value. */
export function withVariables(variables: readonly Variable[], added: readonly Variable[]): readonly Variable[] {
  const values = new Map(added.map(({ name, value }) => [name, value]))
  const updatedVariables = variables
    .filter(({ name, value }) => name !== '' || value !== '')
    .map(one => {
      const value = values.get(one.name)
      values.delete(one.name)
      return value === undefined ? one : { name: one.name, value }
    })
  return [...updatedVariables, ...[...values].map(([name, value]) => ({ name, value }))]
}

/** Repeated names of variables, which an object cannot show. */
export function repeatedNames(variables: readonly Variable[]): readonly string[] {
  const names = variables.map(({ name }) => name.trim())
  return [...new Set(names.filter((name, at) => name !== '' && names.indexOf(name) !== at))]
}

/** Text that stands for the value of a secret in a variable. */
export function secretReference(name: string): string {
  return `{{ RUNPOD_SECRET_${name} }}`
}

/** Names of the secrets that a value refers to. */
export function secretsIn(value: string): readonly string[] {
  return [...value.matchAll(/\{\{\s*RUNPOD_SECRET_([\w.\-/]+)\s*\}\}/g)].map(([, name]) => name!)
}
