/**
 * Makes a later release of the program that runs from the sources: more steps of the schema, and another version.
 * Servers load it with `--import`, so the product needs no way to be given steps.
 */
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

interface Release {
  readonly version: string
  readonly steps: readonly object[]
}

const { RUNYARD_TEST_NEXT_RELEASE: given } = process.env
if (given !== undefined) follow(JSON.parse(given) as Release)

function follow({ version, steps }: Release): void {
  const changed: readonly (readonly [end: string, before: RegExp, after: string])[] = [
    [
      '/src/store/schema/schema-state.ts',
      /(?<=migrations: readonly Migration\[\] = \[)([^\]]+)/,
      `$1, ...${JSON.stringify(steps)}`,
    ],
    [
      '/src/disk/package-files.ts',
      /(?<=export function packageVersion\(\): string \{)/,
      `\n  return ${JSON.stringify(version)}`,
    ],
  ]
  registerHooks({
    load(url, context, next) {
      const change = changed.find(([end]) => url.endsWith(end))
      if (change === undefined) return next(url, context)
      const [, before, after] = change
      const source = readFileSync(fileURLToPath(url), 'utf8')
      if (!before.test(source)) throw new Error(`${url} is not as the tests know it`)
      return { format: 'module-typescript', source: source.replace(before, after), shortCircuit: true }
    },
  })
}
