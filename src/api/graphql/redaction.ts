/** What a request calls what nobody is to see again. */
const HIDDEN = ['value', 'password']
const INLINE = /\b(?:value|password)\s*:\s*("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*"|[^\s,})\]]+)/g
/** Shorter ones are in every sentence. */
const LEAST = 4
const MOST_TEXTS = 1_000
const MOST_LENGTH = 20_000

/**
 * An answer whose errors do not repeat the values of secrets and passwords that the request had: GraphQL puts what it cannot
 * read into its sentences.
 * @param answer as JSON
 * @param body of the request, as it was received, or its value
 */
export function withoutSecrets(answer: string, body: unknown): string {
  if (!answer.includes('"errors"')) return answer
  const read = JSON.parse(answer) as { errors?: { message: string; extensions?: Record<string, unknown> }[] }
  if (read.errors === undefined) return answer
  const texts = hiddenTexts(body)
  for (const error of read.errors) {
    error.message = withoutTexts(withoutStrings(error.message), texts)
    // What the parser of JSON says quotes the body.
    delete error.extensions?.originalError
  }
  return JSON.stringify(read)
}

function withoutStrings(message: string): string {
  return message
    .replace(/, found (?:Block)?String "[\s\S]*"\.$/, ', found a string.')
    .replace(/^(Expected value of type "\w*(?:Secret|Registry)\w*!?"), found [\s\S]*$/, '$1.')
}

function withoutTexts(message: string, texts: readonly string[]): string {
  if (message.length > MOST_LENGTH || texts.length > MOST_TEXTS) return 'the request is wrong in ways too long to tell'
  return texts.reduce((rest, text) => rest.replaceAll(text, '[hidden]'), message)
}

/** Each text also as it looks inside of quotes, the longest first. */
function hiddenTexts(body: unknown): string[] {
  const { query, variables } = requestOf(body)
  const inline = [...query.matchAll(INLINE)].map(match => match[1]!.replace(/^"+|"+$/g, ''))
  const found = new Set(
    [...inline, ...leaves(variables, false)].filter(text => text.length >= LEAST && text.length <= MOST_LENGTH),
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

/** All that is in members which are to be hidden. @param hidden whether the value is in one */
function leaves(value: unknown, hidden: boolean): string[] {
  if (typeof value !== 'object' || value === null) return hidden ? [String(value)] : []
  return Object.entries(value).flatMap(([name, member]) => leaves(member, hidden || HIDDEN.includes(name)))
}
