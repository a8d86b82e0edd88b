/** Names of members whose values are hidden in errors. */
const HIDDEN = ['value', 'password']
const INLINE = /\b(?:value|password)\s*:\s*("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|[^\s,})\]]+)/g
/** Minimum length of a hidden value. Shorter text occurs in ordinary messages. */
const MIN_LENGTH = 4
const MAX_TEXTS = 1_000
const MAX_LENGTH = 20_000

/**
 * Removes values of secrets and passwords of the request from the errors of a response: GraphQL quotes what it cannot
 * read in its messages.
 * @param answer the response as JSON
 * @param body the request body, as received or parsed
 */
export function withoutSecrets(answer: string, body: unknown): string {
  if (!answer.includes('"errors"')) return answer
  const read = JSON.parse(answer) as { errors?: { message: string }[] }
  if (read.errors === undefined) return answer
  const texts = hiddenTexts(body)
  for (const error of read.errors) {
    error.message = withoutTexts(withoutStrings(error.message), texts)
  }
  return JSON.stringify(read)
}

function withoutStrings(message: string): string {
  return message
    .replace(/, found (?:Block)?String "[\s\S]*"\.$/, ', found a string.')
    .replace(/^(Expected value of type "\w*(?:Secret|Registry)\w*!?"), found [\s\S]*$/, '$1.')
}

function withoutTexts(message: string, texts: readonly string[]): string {
  if (message.length > MAX_LENGTH || texts.length > MAX_TEXTS) return 'the request is wrong in ways too long to tell'
  return texts.reduce((rest, text) => rest.replaceAll(text, '[hidden]'), message)
}

/** The values to hide, plain and JSON-escaped, longest first. */
function hiddenTexts(body: unknown): string[] {
  const { query, variables } = requestOf(body)
  const inline = [...query.matchAll(INLINE)].map(match => match[1]!.replace(/^"+|"+$/g, ''))
  const found = new Set(
    [...inline, ...leaves(variables, false)].filter(text => text.length >= MIN_LENGTH && text.length <= MAX_LENGTH),
  )
  const escaped = [...found].map(text => JSON.stringify(text).slice(1, -1))
  return [...new Set([...found, ...escaped])].sort((a, b) => b.length - a.length)
}

function requestOf(body: unknown): { query: string; variables: unknown } {
  try {
    const value = typeof body === 'string' ? JSON.parse(body) : body
    const { query, variables } = value as { query?: unknown; variables?: unknown }
    return { query: typeof query === 'string' ? query : '', variables }
  } catch {
    return { query: String(body), variables: null }
  }
}

/** All text in hidden members. @param hidden whether the value is in one */
function leaves(value: unknown, hidden: boolean): string[] {
  if (typeof value !== 'object' || value === null) return hidden ? [String(value)] : []
  return Object.entries(value).flatMap(([name, member]) => leaves(member, hidden || HIDDEN.includes(name)))
}
