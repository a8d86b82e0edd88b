/**
 * Finds ambient calls: time, timers, randomness, the network and the process, which only adapters
 * and tests of them may use.
 */
import { findImports } from './imports.ts'
import { closing, codeOnly, type Finding, findingsOf, lineAt, skipSpace } from './scan.ts'

/** A name that is global: not after a dot, unless that is of a spread or of `globalThis.`. */
const GLOBAL = String.raw`(?<![\w$#])(?:(?<=globalThis\s*\??\.\s*)|(?<!(?<!\.\.)\.\s*))`

const MEMBERS: [name: string, pattern: string][] = [
  ['Date.now', String.raw`Date\s*\.\s*now\b`],
  ['new Date()', String.raw`new\s+Date\b(?!\s*\(\s*[^)\s])(?!\s*\.)`],
  ['performance', String.raw`performance\s*\.\s*(?:now|mark|measure|timeOrigin)\b`],
  ['Temporal.Now', String.raw`Temporal\s*\.\s*Now\b`],
  ['AbortSignal.timeout', String.raw`AbortSignal\s*\.\s*timeout\b`],
  ['Atomics.wait', String.raw`Atomics\s*\.\s*wait(?:Async)?\b`],
  ['Math.random', String.raw`Math\s*\.\s*random\b`],
  ['crypto', String.raw`(?:web)?crypto\s*\??\.\s*(?:random\w*|getRandomValues|subtle)\b`],
  ['process', String.raw`process\s*\??\.\s*(?:env|hrtime|getBuiltinModule)\b`],
  ['console', String.raw`console\s*\??\.`],
]

const CALLS =
  'setTimeout|setInterval|setImmediate|clearTimeout|clearInterval|clearImmediate|' +
  'fetch|Date|randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues'

const MODULES = /^(?:node:)?(?:timers|timers\/promises|process|perf_hooks)$/

/** The ambient calls and members of a source. @param allowed those that are allowed */
export function findAmbientCalls(source: string, allowed: string[] = []): Finding[] {
  const code = codeOnly(source)
  const members = MEMBERS.filter(([name]) => !allowed.includes(name)).flatMap(([, pattern]) =>
    findingsOf(code, new RegExp(GLOBAL + pattern, 'g'), match => match[0].replace(/\s+/g, ' ')),
  )
  const calls = findBareCalls(code, CALLS).filter(({ what }) => !allowed.includes(what))
  return [...members, ...calls, ...findImportsOf(source, MODULES)].sort((a, b) => a.line - b.line)
}

/** The sleeps on the real clock in a source. */
export function findSleeps(source: string): Finding[] {
  const code = codeOnly(source)
  const waits = findingsOf(code, new RegExp(`${GLOBAL}Atomics\\s*\\.\\s*wait\\b`, 'g'), () => 'Atomics.wait')
  return [...findBareCalls(code, 'setTimeout'), ...waits, ...findImportsOf(source, /^(?:node:)?timers(?:\/promises)?$/)]
}

/** The ambient calls that a file may use; undefined where all are allowed. */
export function allowanceOf(path: string): string[] | undefined {
  if (/^src\/(?:system\/|main\/|server\/|relay\/|pump\/|doctor\/|cli\/|drivers\/cage\/door\.ts$)/.test(path))
    return undefined
  if (/^test\/(?:wire|browser|support|scripts)\//.test(path)) return undefined
  if (path === 'sim/run.ts') return ['setImmediate', 'console']
  // A thread that waits for another one gives its processor away for a moment.
  if (path === 'src/gateway/threads/shared-lock.ts') return ['Atomics.wait']
  // As the client of PostgreSQL beside it, which ends waits for connections.
  if (path === 'src/store/engines/postgres-gathering.ts') return ['setTimeout']
  return /^(?:src|sim|test)\//.test(path) ? [] : undefined
}

function findImportsOf(source: string, modules: RegExp): Finding[] {
  return findImports(source).flatMap(({ specifier, line }) =>
    specifier !== undefined && modules.test(specifier) ? [{ line, what: `import of ${specifier}` }] : [],
  )
}

function findBareCalls(code: string, names: string): Finding[] {
  const pattern = new RegExp(String.raw`${GLOBAL}(${names})\s*(?:\?\.\s*)?\(`, 'g')
  return [...code.matchAll(pattern)]
    .filter(match => !isDeclaration(code, match.index, match.index + match[0].length - 1))
    .map(match => ({ line: lineAt(code, match.index), what: match[1] as string }))
}

/** True if the name at `start` with parentheses at `open` declares a function or method, or is part of `new X(`. */
function isDeclaration(code: string, start: number, open: number): boolean {
  const before = code.slice(0, start).trimEnd()
  const word = /[\w$]+$/.exec(before)?.[0] ?? ''
  if (word === 'function' || word === 'new') return true
  const next = code[skipSpace(code, closing(code, open) + 1)]
  if (next === '{') return true
  if (next !== ':') return false
  // `name(...): T` is a signature where a member may begin, and the middle of a conditional expression elsewhere.
  if (/^(?:async|static|public|private|protected|override|readonly|abstract|get|set)$/.test(word)) return true
  if (/[{};,*]$/.test(before)) return true
  return code.slice(before.length, start).includes('\n') && /[\w$'"`)\]>]$/.test(before)
}
