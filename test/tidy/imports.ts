/** Finds the imports of a source, forbidden imports, and cycles of imports. */
import { isBuiltin } from 'node:module'
import { dirname, join, matchesGlob } from 'node:path/posix'
import { codeOnly, type Finding, lineAt, skipSpace } from './scan.ts'
import { places, subjects, type Wall, walls } from './walls.ts'

/** One import or re-export, static or dynamic, of values or types. */
export interface Import {
  /** Undefined where it is computed. */
  specifier: string | undefined
  line: number
}

const FROM = /(?<![.\w$])(?:from|import)\s*(?=['"])|(?<![.\w$])import\s*\(/g

/** Every import of a source. */
export function findImports(source: string): Import[] {
  const code = codeOnly(source)
  return [...code.matchAll(FROM)].map(match => {
    const open = skipSpace(code, match.index + match[0].length)
    const quote = code[open] as string
    const end = code.indexOf(quote, open + 1)
    const literal = /['"`]/.test(quote) && end !== -1 ? source.slice(open + 1, end) : undefined
    const computed = literal === undefined || (quote === '`' && literal.includes('${'))
    return { specifier: computed ? undefined : literal, line: lineAt(code, match.index) }
  })
}

/** The imports of the file at `path` that the walls between floors forbid. */
export function findForbiddenImports(source: string, path: string): Finding[] {
  const wall = wallOf(path)
  if (wall === undefined) return [{ line: 1, what: 'this place is in no row of the table in test/tidy/walls.ts' }]
  return findImports(source).flatMap(({ specifier, line }) => {
    const reason = forbidden(wall, path, specifier)
    return reason === undefined ? [] : [{ line, what: `${wall.folder} may not import ${reason}` }]
  })
}

/** The imports of the file at `path` that the walls between the subjects of its floor forbid. */
export function findForbiddenSubjects(source: string, path: string): Finding[] {
  const [floor, table] = Object.entries(subjects).find(([folder]) => path.startsWith(`${folder}/`)) ?? []
  if (floor === undefined || table === undefined) return []
  const own = subjectOf(floor, path)
  if (own !== null && table[own] === undefined)
    return [{ line: 1, what: `${floor}/${own} is not in the table of subjects in test/tidy/walls.ts` }]
  const allowed = own === null ? [] : [own, ...words(table[own] ?? '')]
  return findImports(source).flatMap(({ specifier = '', line }) => {
    const target = join(dirname(path), specifier)
    const subject = specifier.startsWith('.') && target.startsWith(`${floor}/`) ? subjectOf(floor, target) : null
    if (subject === null || allowed.includes(subject)) return []
    return [{ line, what: `${own === null ? `the top of ${floor}` : `${floor}/${own}`} may not import ${target}` }]
  })
}

/** The subject of a file; null at the top of its floor. */
function subjectOf(floor: string, path: string): string | null {
  const rest = path.slice(floor.length + 1).split('/')
  return rest.length > 1 ? rest[0]! : null
}

/** The row of the table for a file. */
export function wallOf(path: string): Wall | undefined {
  return walls.find(wall => isIn(path, wall.folder))
}

function forbidden(wall: Wall, path: string, specifier: string | undefined): string | undefined {
  if (wall.project === 'anything') return undefined
  if (specifier === undefined) return wall.builtins === 'any' ? undefined : 'what a computed name says'
  if (/^\.{0,2}\//.test(specifier)) {
    const target = join(dirname(path), specifier)
    return isIn(target, wall.folder) || isInAny(target, wall.project) ? undefined : target
  }
  if (isBuiltin(specifier)) {
    const name = specifier.replace(/^node:/, '').split('/')[0] as string
    return wall.builtins === 'any' || words(wall.builtins).includes(name) ? undefined : `the built-in ${specifier}`
  }
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  return words(wall.packages).some(glob => matchesGlob(name, glob)) ? undefined : `the package ${name}`
}

function words(text: string): string[] {
  return text.split(' ').filter(word => word !== '')
}

function isIn(path: string, place: string): boolean {
  const glob = places[place]
  if (glob === undefined) throw new Error(`unknown place ${place}`)
  return matchesGlob(path, glob)
}

function isInAny(path: string, project: string): boolean {
  const excluded = words(project).filter(word => word.startsWith('!'))
  if (excluded.some(word => isIn(path, word.slice(1)))) return false
  return words(project).some(word => !word.startsWith('!') && isIn(path, word))
}

/** A shortest cycle for each group of files that import each other. @param texts the texts of the files by path */
export function findCycles(texts: Map<string, string>): string[][] {
  return cyclesOf(new Map([...texts].map(([path, source]) => [path, targets(path, source, texts)])))
}

/**
 * A shortest cycle for each group of folders whose files import each other.
 * @param texts the texts of the files by path
 */
export function findFolderCycles(texts: Map<string, string>): string[][] {
  const folders = new Map<string, string[]>()
  for (const [path, source] of texts) {
    const folder = dirname(path)
    const others = targets(path, source, texts).map(target => dirname(target))
    folders.set(folder, [...(folders.get(folder) ?? []), ...others.filter(other => other !== folder)])
  }
  return cyclesOf(folders)
}

function cyclesOf(graph: Map<string, string[]>): string[][] {
  const reported = new Set<string>()
  const cycles: string[][] = []
  for (const path of graph.keys()) {
    if (reported.has(path)) continue
    const cycle = shortestCycle(graph, path)
    if (cycle === undefined || cycle.some(member => reported.has(member))) continue
    for (const member of cycle) reported.add(member)
    cycles.push(cycle)
  }
  return cycles
}

function targets(path: string, source: string, texts: Map<string, string>): string[] {
  const relative = findImports(source).flatMap(({ specifier }) => (specifier?.startsWith('.') ? [specifier] : []))
  return relative.map(specifier => join(dirname(path), specifier)).filter(target => texts.has(target))
}

/** The shortest cycle through a file or folder, with it at both ends. */
function shortestCycle(graph: Map<string, string[]>, start: string): string[] | undefined {
  const cameFrom = new Map<string, string>()
  const queue = [start]
  for (const path of queue) {
    for (const target of graph.get(path) ?? []) {
      if (target === start) return [...pathTo(path, cameFrom), start]
      if (cameFrom.has(target)) continue
      cameFrom.set(target, path)
      queue.push(target)
    }
  }
  return undefined
}

function pathTo(path: string, cameFrom: Map<string, string>): string[] {
  const before = cameFrom.get(path)
  return before === undefined ? [path] : [...pathTo(before, cameFrom), path]
}
