/**
 * Finds regular expressions whose time grows faster than the text: by analysis, and by long texts
 * of what each of them takes.
 */
import vm from 'node:vm'
import { type AST, parseRegExpLiteral } from '@eslint-community/regexpp'
import { transformSync } from 'esbuild'
import { analyse } from 'scslre'
import { codeOnly, type Finding, findingsOf, lineAt, type RegexLiteral, regexLiterals } from './scan.ts'

/** The source and the flags of a regular expression. */
export interface Pattern {
  readonly source: string
  readonly flags: string
}

/** The regular expressions of a file. */
export function patternsOf(source: string, path: string): RegexLiteral[] {
  if (!path.endsWith('x')) return regexLiterals(source)
  const plain = transformSync(source, { loader: 'tsx' }).code
  return regexLiterals(plain).map(each => ({ ...each, line: lineAt(source, source.indexOf(`/${each.source}/`)) }))
}

/**
 * The regular expressions of a file that backtrack over a run of one character, or begin
 * again at each character of it.
 */
export function findSlowPatterns(source: string, path: string): Finding[] {
  return patternsOf(source, path).flatMap(({ line, ...pattern }) => {
    const what = `/${pattern.source}/${pattern.flags}`
    return isSlow(pattern) ? [{ line, what: `${what} takes time that grows faster than its text` }] : []
  })
}

/** True when the analysis finds that the time of a pattern grows faster than its text. */
export function isSlow(pattern: Pattern): boolean {
  return analyse(pattern, { maxReports: 1 }).reports.length > 0
}

/** The constructors of regular expressions within functions, where no test reaches what they make. */
export function findHiddenConstructors(source: string): Finding[] {
  const code = codeOnly(source)
  return findConstructors(source).filter(({ line }) => !isTopLevel(code, line))
}

/** The constructors of regular expressions. */
export function findConstructors(source: string): Finding[] {
  return findingsOf(codeOnly(source), /\bnew\s+RegExp\s*\(/g, () => 'a regular expression is made within a function')
}

/** True when a line is part of the value of a constant of the module. */
function isTopLevel(code: string, line: number): boolean {
  const start = code
    .split('\n')
    .slice(0, line)
    .findLast(each => /^[^\s})\]]/.test(each))
  return /^(?:export )?const /.test(start ?? '')
}

/** Length of a text that a pattern is tried on. */
const LENGTH = 100_000
/**
 * Bound on the time of the processor for one text. A text whose time grows with its square
 * takes longer than a second.
 */
const MAX_MS = 400
/** The part of a bound that counts as all of it. */
const MOST = 0.8
/** Number of bounds of parts that a run can reach over. */
const MAX_BOUNDS = 6

/** A text for which a pattern takes too long, shortened; null if every text is fast. */
export function slowTextOf(pattern: Pattern): string | null {
  for (const { before, run, behind } of attacksOn(pattern)) {
    const text = before + run.repeat(Math.ceil(LENGTH / run.length)) + behind
    if (isTooLong(pattern, text))
      return `${JSON.stringify(before)} + ${JSON.stringify(run)} repeated + ${JSON.stringify(behind)}`
  }
  return null
}

const searching = vm.createContext({ pattern: /x/, text: '' })
const SEARCH = new vm.Script("text.replace(pattern, '')")

/** As V8 looks for time limits while a pattern goes back, even one with exponential time ends. */
function isTooLong({ source, flags }: Pattern, text: string): boolean {
  Object.assign(searching, { pattern: new RegExp(source, flags), text })
  // On a busy machine it is stopped before it has had its time.
  for (let waitMs = MAX_MS; ; waitMs *= 2) {
    const before = process.threadCpuUsage()
    try {
      SEARCH.runInContext(searching, { timeout: waitMs })
      return false
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    }
    const { user, system } = process.threadCpuUsage(before)
    if (user + system > MAX_MS * MOST * 1_000) return true
  }
}

interface Attack {
  readonly before: string
  readonly run: string
  readonly behind: string
}

/** Texts that repeat a part of what the pattern takes, and then do not match. */
function attacksOn(pattern: Pattern): Attack[] {
  const { source, flags } = pattern
  const tree = parseRegExpLiteral(`/${source}/${flags}`).pattern
  const found = new Map<string, Attack>()
  for (const alternative of alternativesOf(tree)) {
    const samples = alternative.elements.map(element => sampleOf(element, flags))
    for (const [from, to] of ranges(alternative.elements)) {
      const run = samples.slice(from, to).join('')
      if (run === '') continue
      for (const before of ['', samples.slice(0, from).join('')]) {
        for (const behind of ['\0', '\n\0']) found.set(JSON.stringify([before, run, behind]), { before, run, behind })
      }
    }
  }
  return [...found.values()]
}

/** All alternatives of a pattern, in groups as well. */
function alternativesOf(node: AST.Node): AST.Alternative[] {
  if (node.type === 'Alternative') return [node, ...node.elements.flatMap(alternativesOf)]
  if (node.type === 'Quantifier') return alternativesOf(node.element)
  return 'alternatives' in node
    ? node.alternatives.flatMap(each => (each.type === 'Alternative' ? alternativesOf(each) : []))
    : []
}

/** All of the elements, and those between the start, the end and the repetitions, with and without these. */
function ranges(elements: readonly AST.Element[]): [from: number, to: number][] {
  const bounds = new Set([0, elements.length])
  elements.forEach((element, at) => {
    if (element.type === 'Quantifier') for (const bound of [at - 1, at, at + 1, at + 2]) bounds.add(bound)
  })
  const sorted = [...bounds].filter(at => at >= 0 && at <= elements.length).sort((a, b) => a - b)
  return sorted.flatMap((from, index) =>
    sorted.slice(index + 1, index + MAX_BOUNDS).map((to): [number, number] => [from, to]),
  )
}

/** A short text that an element matches; empty if it matches no text. */
function sampleOf(element: AST.Element, flags: string): string {
  switch (element.type) {
    case 'Character':
      return String.fromCodePoint(element.value)
    case 'CharacterSet':
    case 'CharacterClass':
    case 'ExpressionCharacterClass':
      return memberOf(element.raw, flags)
    case 'Quantifier':
      return sampleOf(element.element, flags).repeat(Math.max(1, Math.min(element.min, 100)))
    case 'Group':
    case 'CapturingGroup':
      return element.alternatives[0]!.elements.map(each => sampleOf(each, flags)).join('')
    default:
      return ''
  }
}

/** Characters of all common kinds; those first that sets have in common with each other. */
const CHARACTERS = [...'0a A\t\n-_."/:,=\\()[]{}<>;\'`#%&*+?!|~^$@\u0080\u00e9\u200b\u4e00\u{1f600}\0']
const members = new Map<string, string>()

/** A character of a set. */
function memberOf(raw: string, flags: string): string {
  const key = `${raw} ${flags}`
  let member = members.get(key)
  if (member === undefined) {
    const set = new RegExp(`^${raw}$`, flags.replace(/[gy]/g, ''))
    member = CHARACTERS.find(each => set.test(each)) ?? ''
    for (let code = 0; member === '' && code < 0xffff; code += 1) {
      if (set.test(String.fromCharCode(code))) member = String.fromCharCode(code)
    }
    members.set(key, member)
  }
  return member
}

/** The patterns that modules make with a constructor when they are imported. */
export async function constructedPatterns(load: () => Promise<unknown>): Promise<Pattern[]> {
  const made: Pattern[] = []
  const { RegExp: Original } = globalThis
  globalThis.RegExp = new Proxy(Original, {
    construct(target, [source, flags]) {
      const pattern = new target(source, flags)
      made.push({ source: pattern.source, flags: pattern.flags })
      return pattern
    },
  })
  try {
    await load()
  } finally {
    globalThis.RegExp = Original
  }
  return made
}
