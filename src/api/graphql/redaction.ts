import { Kind, Lexer, print, Source, type Token, TokenKind } from 'graphql'
import { MAX_CHARACTERS, MAX_TOKENS } from './limits.ts'

/** Names of members whose values are hidden in errors. */
const HIDDEN: readonly string[] = ['value', 'password']
/** Minimum length of a hidden value. Shorter text occurs in ordinary messages. */
const MIN_LENGTH = 4
/** Maximum characters of a message. A longer one quotes long values of the request. */
const MAX_LENGTH = 4_000
/** Maximum values that messages write in another way. */
const MAX_ESCAPED = 1_000
/** Characters that messages write in another way. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are some of them.
const ESCAPED = /["\\\u0000-\u001f\u007f-\u009f\ud800-\udfff]/
/** Maximum comparisons of a place of a message with a value, for all messages of one response. */
const MAX_COMPARISONS = 100_000

const TOO_LONG = 'the request has errors that are too long to report'

/** The part of a GraphQL request that may contain secrets. */
export interface RequestText {
  readonly query: string
  readonly variables: unknown
}

/**
 * Removes values of secrets and passwords of a request from messages of GraphQL, which quotes values that it cannot
 * read. A message that quotes too much becomes a short one, and the time for all messages of a request is bounded.
 * @param request read at the first message
 */
export function secretHider(request: RequestText): (message: string) => string {
  let values: ReadonlyMap<string, readonly string[]> | null | undefined
  let comparisons = 0
  return message => {
    if (message.length > MAX_LENGTH) return TOO_LONG
    const text = withoutStrings(message)
    if (values === undefined) values = hiddenByStart(request)
    if (values === null) return TOO_LONG
    if (values.size === 0) return text
    let shown = ''
    for (let at = 0; at < text.length; ) {
      const candidates = values.get(text.slice(at, at + MIN_LENGTH)) ?? []
      comparisons += candidates.length
      if (comparisons > MAX_COMPARISONS) return TOO_LONG
      const secret = candidates.find(value => text.startsWith(value, at))
      shown += secret === undefined ? text[at] : '[hidden]'
      at += secret?.length ?? 1
    }
    return shown
  }
}

/** Messages that quote a string, or a whole object with secrets, without the quote. */
function withoutStrings(message: string): string {
  const type = /^Expected value of type "(\w+)!?", found /.exec(message)
  if (type !== null && /Secret|Registry/.test(type[1]!)) return `${type[0].slice(0, -', found '.length)}.`
  if (!message.endsWith('".')) return message
  const at = [', found String "', ', found BlockString "'].map(words => message.indexOf(words)).filter(at => at !== -1)
  return at.length === 0 ? message : `${message.slice(0, Math.min(...at))}, found a string.`
}

/** The values to hide by their first characters, each list with the longest first; null for too many. */
function hiddenByStart(request: RequestText): Map<string, string[]> | null {
  const texts = hiddenTexts(request)
  if (texts === null) return null
  const sorted = [...texts].sort((a, b) => b.length - a.length)
  return Map.groupBy(sorted, text => text.slice(0, MIN_LENGTH))
}

/** The values to hide, as they are and as messages quote them; null for too many. */
function hiddenTexts({ query, variables }: RequestText): Set<string> | null {
  const texts = new Set([...inlineTexts(query), ...memberTexts(variables)])
  const hidden = new Set<string>()
  let escaped = 0
  for (const text of texts) {
    if (text.length < MIN_LENGTH || text.length > MAX_LENGTH) continue
    hidden.add(text)
    if (!ESCAPED.test(text)) continue
    escaped += 1
    if (escaped > MAX_ESCAPED) return null
    hidden.add(JSON.stringify(text).slice(1, -1)).add(print({ kind: Kind.STRING, value: text }).slice(1, -1))
  }
  return hidden
}

/** The values behind a hidden name and a colon in a document, up to its first unreadable part. */
function inlineTexts(query: string): string[] {
  // Such a document is refused before anything reads it, so no message quotes it.
  if (query.length > MAX_CHARACTERS) return []
  const texts: string[] = []
  const lexer = new Lexer(new Source(query))
  try {
    for (let tokens = 0; tokens < MAX_TOKENS && lexer.token.kind !== TokenKind.EOF; tokens += 1) {
      const isHidden = lexer.token.kind === TokenKind.NAME && HIDDEN.includes(lexer.token.value)
      if (lexer.advance().kind === TokenKind.COLON && isHidden) {
        for (const { value, start, end } of valueAfter(lexer)) texts.push(value ?? '', query.slice(start, end))
      }
    }
  } catch {
    // GraphQL quotes nothing behind a mistake in the document.
  }
  return texts
}

/** The tokens of the value behind a colon, with all within its brackets. */
function* valueAfter(lexer: Lexer): Generator<Token> {
  let depth = 0
  do {
    const token = lexer.advance()
    if (token.kind === TokenKind.EOF) return
    if (token.kind === TokenKind.BRACKET_L || token.kind === TokenKind.BRACE_L) depth += 1
    else if (token.kind === TokenKind.BRACKET_R || token.kind === TokenKind.BRACE_R) depth -= 1
    else yield token
  } while (depth > 0)
}

/** All text in hidden members of a value, in any depth. */
function memberTexts(root: unknown): string[] {
  const texts: string[] = []
  const waiting: { value: unknown; isHidden: boolean }[] = [{ value: root, isHidden: false }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, isHidden } = next
    if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        waiting.push({ value: member, isHidden: isHidden || HIDDEN.includes(name) })
      }
    } else if (isHidden) texts.push(String(value))
  }
  return texts
}
