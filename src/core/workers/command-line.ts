/** Start commands: one string that a person wrote, split into words. No shell ever sees it. */
import { WorkerStartError } from './start-failure.ts'

/** The error for args that are not a command line. */
export function argsInvalid(problem: string, cause?: unknown): WorkerStartError {
  return new WorkerStartError({ kind: 'args_invalid', problem }, { cause })
}

/** Characters that a backslash escapes within double quotes (POSIX.1-2024, Shell Command Language 2.2.3). */
const ESCAPED_IN_DOUBLE_QUOTES = '$`"\\'

/**
 * The words of a command line, split as a POSIX shell does: single and double quotes, backslashes, empty words.
 * Nothing else is interpreted: variables, patterns, comments and operators stay plain text.
 * @throws WorkerStartError if a quote is not closed, or a backslash is the last character
 */
export function splitCommandLine(text: string): string[] {
  const words: string[] = []
  let word: string | null = null
  let at = 0
  while (at < text.length) {
    const char = text[at] as string
    if (' \t\r\n'.includes(char)) {
      if (word !== null) words.push(word)
      word = null
      at += 1
      continue
    }
    const part: Part =
      char === "'" || char === '"' ? quoted(text, at) : char === '\\' ? escaped(text, at) : plain(char, at)
    // A backslash before a newline joins two lines and makes no word.
    if (part.text !== null) word = (word ?? '') + part.text
    at = part.next
  }
  if (word !== null) words.push(word)
  return words
}

/** A piece of a word, and the start of the next one; null is no word, an empty text an empty word. */
interface Part {
  readonly text: string | null
  readonly next: number
}

function plain(char: string, at: number): Part {
  return { text: char, next: at + 1 }
}

function escaped(text: string, at: number): Part {
  const char = text[at + 1]
  if (char === undefined) throw argsInvalid('args ends with a backslash that stands before nothing')
  return { text: char === '\n' ? null : char, next: at + 2 }
}

function quoted(text: string, open: number): Part {
  const quote = text[open] as string
  let inside = ''
  for (let at = open + 1; at < text.length; at++) {
    const char = text[at] as string
    if (char === quote) return { text: inside, next: at + 1 }
    const next = text[at + 1]
    if (
      char === '\\' &&
      quote === '"' &&
      next !== undefined &&
      (next === '\n' || ESCAPED_IN_DOUBLE_QUOTES.includes(next))
    ) {
      if (next !== '\n') inside += next
      at += 1
    } else inside += char
  }
  throw argsInvalid(`args has a quote that is not closed: ${quote}${text.slice(open + 1, open + 30)}`)
}

/**
 * The words of an endpoint's args: a command line, or the JSON `{"entrypoint": [...], "cmd": [...]}` of clients,
 * whose parts are joined. Empty without a command.
 * @throws WorkerStartError with the reason
 */
export function parseArgs(args: string): string[] {
  const { entrypoint, cmd } = parseContainerArgs(args)
  return [...(entrypoint ?? []), ...(cmd ?? [])]
}

/** Replacements for an image's entry point and command; null keeps the image's own. */
export interface ContainerArgs {
  readonly entrypoint: readonly string[] | null
  readonly cmd: readonly string[] | null
}

/**
 * {@link parseArgs} in its parts. A command line becomes the arguments of the entry point.
 * @throws WorkerStartError with the reason
 */
export function parseContainerArgs(args: string): ContainerArgs {
  const text = args.trim()
  if (!text.startsWith('{')) {
    const words = splitCommandLine(text)
    return { entrypoint: null, cmd: words.length === 0 ? null : words }
  }
  const { entrypoint, cmd, ...others } = parseObject(text)
  const isPart = (value: unknown): value is string[] | undefined => value === undefined || isWords(value)
  if (!isPart(entrypoint) || !isPart(cmd) || Object.keys(others).length > 0) {
    throw argsInvalid('args as JSON may have "entrypoint" and "cmd", each a list of strings')
  }
  return { entrypoint: entrypoint ?? null, cmd: cmd ?? null }
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch (cause) {
    throw argsInvalid('args begins with { but is not JSON', cause)
  }
}

function isWords(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string')
}
