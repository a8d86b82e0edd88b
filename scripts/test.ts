/**
 * Runs test folders with the pinned Node's own test runner: `scripts/test.ts [folder ...]`, by default every folder
 * under `test/` that holds tests. A folder name may be followed by a pattern: `wire/python`.
 */
import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'

const wanted = process.argv.slice(2)
const patterns = wanted.length === 0 ? ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'] : wanted.map(toPattern)
const files = patterns.flatMap(pattern => globSync(pattern)).sort()
if (files.length === 0) {
  console.error(`no tests match ${patterns.join(' ')}`)
  process.exit(1)
}
const run = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' })
process.exit(run.status ?? 1)

function toPattern(name: string): string {
  return name.endsWith('.test.ts') ? name : `{test,packages}/**/${name.replace(/\/$/, '')}{/**/*,*}.test.ts`
}
