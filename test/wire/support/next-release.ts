/**
 * Makes a later release of the program, built or from the sources: more steps of the schema, and another version.
 * Servers load it with `--import`, so the product needs no way to be given steps.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

interface Release {
  readonly version: string
  readonly steps: readonly object[]
}

const { RUNYARD_TEST_NEXT_RELEASE: release } = process.env
if (release !== undefined) follow(JSON.parse(release) as Release)

function follow({ version, steps }: Release): void {
  const changes = [
    {
      source: '/src/store/schema/schema-state.ts',
      before: /(?<=\bmigrations(?:: readonly Migration\[\])? = \[)([^\]]+)/,
      after: `$1, ...${JSON.stringify(steps)}`,
    },
    {
      source: '/src/disk/package-files.ts',
      before: /(?<=function packageVersion\(\)(?:: string)? \{)/,
      after: `\n  return ${JSON.stringify(version)}`,
    },
  ]
  registerHooks({
    load(url, context, next) {
      // The file of a function in the built program has no name of its own.
      const isBuilt = url.includes('/dist/chunks/')
      const wanted = changes.filter(({ source }) => isBuilt || url.endsWith(source))
      if (wanted.length === 0) return next(url, context)
      const original = readFileSync(fileURLToPath(url), 'utf8')
      const source = wanted.reduce(
        (text, { before: pattern, after: replacement }) => text.replace(pattern, replacement),
        original,
      )
      if (source !== original) return { format: isBuilt ? 'module' : 'module-typescript', source, shortCircuit: true }
      if (!isBuilt) throw new Error(`${url} is not as the tests know it`)
      return next(url, context)
    },
  })
}
