/** Measures files and functions, and finds exports without a docstring and types that check nothing. */
import { closing, codeOnly, type Finding, findingsOf, lineAt, skipSpace } from './scan.ts'

/** The longest that a file may be, in lines. */
export const MAX_FILE_LINES = 500

/** The longest that a function may be, from its parameters to its closing brace, in lines. */
export const MAX_FUNCTION_LINES = 100

/** A function with a block body. */
export interface FunctionSpan {
  name: string
  firstLine: number
  lines: number
}

/** One finding when a source has more lines than allowed. */
export function findLongFile(source: string, max: number = MAX_FILE_LINES): Finding[] {
  const lines = source.replace(/\n$/, '').split('\n').length
  return lines > max ? [{ line: max + 1, what: `the file has ${lines} lines, ${max} are allowed` }] : []
}

/** The functions of a source that have more lines than allowed. */
export function findLongFunctions(source: string, max: number = MAX_FUNCTION_LINES): Finding[] {
  return findFunctions(source)
    .filter(({ lines }) => lines > max)
    .map(({ name, firstLine, lines }) => ({
      line: firstLine,
      what: `${name} has ${lines} lines, ${max} are allowed`,
    }))
}

/** Every function declaration, method and arrow function with a block body. */
export function findFunctions(source: string): FunctionSpan[] {
  const code = codeOnly(source)
  const spans = new Map<number, FunctionSpan>()
  for (const match of code.matchAll(/\(|(?<![\w$)])[\w$]+\s*=>\s*(?=\{)/g)) {
    const body = match[0] === '(' ? bodyAfterParameters(code, match.index) : match.index + match[0].length
    if (body === undefined || spans.has(body)) continue
    const firstLine = lineAt(code, match.index)
    const lines = lineAt(code, closing(code, body)) - firstLine + 1
    spans.set(body, { name: nameBefore(code, match.index), firstLine, lines })
  }
  return [...spans.values()]
}

/** The opening brace of the function whose parameters begin at `open`, or undefined where there is no such function. */
function bodyAfterParameters(code: string, open: number): number | undefined {
  const before = code.slice(Math.max(0, open - 200), open).trimEnd()
  if (/(?<![.\w$#])(?:if|for|for\s+await|while|switch|catch|with)$/.test(before)) return undefined
  if (/\b(?:extends|case)\s+[\w$.]*$/.test(before)) return undefined
  const next = skipSpace(code, closing(code, open) + 1)
  if (code[next] === '{') return next
  if (code.startsWith('=>', next)) {
    const body = skipSpace(code, next + 2)
    return code[body] === '{' ? afterArrow(code, body) : undefined
  }
  return code[next] === ':' ? bodyAfterType(code, next + 1) : undefined
}

const PREFIX = /^(?:typeof|keyof|readonly|unique|infer|asserts|new|abstract)$/
const INFIX = /^(?:is|extends)$/

/**
 * Walks over the return type that starts at `from` to the brace of the body behind it. A brace where the type still
 * wants an operand belongs to the type; one behind a complete operand opens the body.
 */
function bodyAfterType(code: string, from: number): number | undefined {
  let complete = false
  let at = skipSpace(code, from)
  while (at < code.length) {
    const char = code[at] as string
    const word = /^[\w$\u0080-\uffff]+/.exec(code.slice(at, at + 100))?.[0]
    if (char === '{' && complete) return at
    if (code.startsWith('=>', at)) {
      const next = skipSpace(code, at + 2)
      if (code[next] === '{') return afterArrow(code, next)
      complete = false
      at += 2
    } else if (word !== undefined) {
      if (complete && !INFIX.test(word)) return undefined
      complete = !complete && !PREFIX.test(word)
      at += word.length
    } else if (/[{([<'"`]/.test(char)) {
      at = endOfGroup(code, at) + 1
      complete = true
    } else if (/[|&.?:-]/.test(char)) {
      complete = false
      at++
    } else return undefined
    at = skipSpace(code, at)
  }
  return undefined
}

/** `=> {` opens a body, unless it is the object type in `(): () => { a: string } {`. */
function afterArrow(code: string, open: number): number {
  const next = skipSpace(code, closing(code, open) + 1)
  return code[next] === '{' ? next : open
}

function endOfGroup(code: string, at: number): number {
  const char = code[at] as string
  if (/['"`]/.test(char)) {
    const end = code.indexOf(char, at + 1)
    return end === -1 ? code.length : end
  }
  if (char !== '<') return closing(code, at)
  let depth = 0
  for (let end = at; end < code.length; end++) {
    if (code[end] === '<') depth++
    else if (code[end] === '>' && code[end - 1] !== '=' && --depth === 0) return end
  }
  return code.length
}

function nameBefore(code: string, at: number): string {
  const before = code.slice(Math.max(0, at - 200), at).trimEnd()
  const name = /(#?[\w$]+)(?:\s*[=:]\s*(?:async)?)?$/.exec(before.replace(/<[^<>()]*>$/, ''))?.[1]
  return name === undefined || /^(?:async|function|return|await)$/.test(name) ? 'a function' : name
}

const EXPORT =
  /^export\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\b\s*\*?|const\s+enum|const|let|var|class|interface|type|enum|namespace)\s+([\w$]+)/gm

/** The exports of a source that have no docstring directly above them. Overloads share the one of the first. */
export function findUndocumentedExports(source: string): Finding[] {
  const code = codeOnly(source)
  const lines = source.split('\n')
  const seen = new Set<string>()
  const bare = [...code.matchAll(EXPORT)].flatMap(match => {
    const name = match[1] as string
    const line = lineAt(code, match.index)
    if (seen.has(name) || hasDocstring(lines.slice(0, line - 1))) {
      seen.add(name)
      return []
    }
    return [{ line, what: `${name} is exported without a docstring` }]
  })
  const hidden = findingsOf(
    code,
    /^export\s+(?:type\s+)?\{[^}]*\}(?!\s*from\b)/gm,
    () => 'a list of exports hides its declarations: export each where it is declared',
  )
  return [...bare, ...hidden]
}

/** Whether the lines end with a docstring that says something; a linter's directive may stand behind it. */
function hasDocstring(lines: string[]): boolean {
  const above = lines.slice(0, lines.findLastIndex(line => !/^\s*\/\/\s*biome-ignore/.test(line)) + 1)
  const comment = above
    .slice(above.findLastIndex(line => /^\s*\/\*/.test(line)))
    .join('\n')
    .trimStart()
  return /^\/\*\*(?!\/)(?:(?!\*\/)[\s\S])*\p{Letter}(?:(?!\*\/)[\s\S])*\*\/$/u.test(comment)
}

/** Every `any` that stands as a type. */
export function findAnyTypes(source: string): Finding[] {
  const pattern = /(?::|\bas\b|<|(?<=<[^<>=;{}]*),|\|)\s*any\b(?!\s*[(.:$])/g
  return findingsOf(codeOnly(source), pattern, () => 'the type any: say unknown and narrow it')
}

/** Objects that are spread where they are written: their members belong into the object around them. */
export function findPackedSpreads(source: string): Finding[] {
  return findingsOf(codeOnly(source), /\.\.\.\{/g, () => 'write the members into the object around them')
}

/** Exported types by their names, with the files that export one. */
export function exportedTypes(texts: ReadonlyMap<string, string>): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const [path, source] of texts)
    for (const [, name = ''] of codeOnly(source).matchAll(
      /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) ([\w$]+)/gm,
    ))
      found.set(name, [...(found.get(name) ?? []), path])
  return found
}
