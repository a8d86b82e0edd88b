/** Finds exports without a docstring, spreads of what is written there, and exported types that share a name. */
import { codeOnly, type Finding, findingsOf, lineAt } from './scan.ts'

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

/** True if the lines end with a docstring that says something; a directive of the linter may follow it. */
function hasDocstring(lines: string[]): boolean {
  const above = lines.slice(0, lines.findLastIndex(line => !/^\s*\/\/\s*biome-ignore/.test(line)) + 1)
  const comment = above
    .slice(above.findLastIndex(line => /^\s*\/\*/.test(line)))
    .join('\n')
    .trimStart()
  return /^\/\*\*(?!\/)(?:(?!\*\/)[\s\S])*\p{Letter}(?:(?!\*\/)[\s\S])*\*\/$/u.test(comment)
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
