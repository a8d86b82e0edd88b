/** The options of the test command. */
import { existsSync, globSync } from 'node:fs'
import { parseArgs } from 'node:util'

const HELP = `npm test -- [options] [file or folder ...]

Runs tests, all of them by default, and closes with a plain count. A folder may be named by its end: core/jobs, wire/attacks, tidy.

  --grep <pattern>     only tests whose name matches the regular expression; may be given several times
  --list               show which files would run, lane by lane, and run nothing
  --watch              run the files again each time that one of them, or what it imports, changes
  --workers container  run all tests of test/wire that are about workers, with their workers in containers
  --help               show this text

Suites that need Python, Docker or PostgreSQL are skipped with a reason where there is none; CONTRIBUTING.md says how to have them.
RUNYARD_NO_SKIP=1 makes a skipped test a failure. RUNYARD_SEEDS is the number of seeds of the simulator. Waits grow with the load of the machine;
RUNYARD_TEST_PATIENCE=3 makes them three times as long. A file that fails runs once more, alone, and whether it passes then decides.
`

/** The arguments of a run. */
export interface Arguments {
  /** The files to run, as paths from the working directory, each once and in order. */
  readonly files: readonly string[]
  /** True if the run has all files, because no file or folder was named. */
  readonly isWhole: boolean
  readonly onlyContainers: boolean
  readonly grep: readonly RegExp[]
  readonly list: boolean
  readonly watch: boolean
}

/** Reads the arguments. A mistake in them, or `--help`, ends the process. */
export function readArguments(): Arguments {
  const { values, positionals: wanted } = parsed()
  if (values.help) {
    process.stdout.write(HELP)
    process.exit(0)
  }
  if (!['', 'container'].includes(values.workers)) refuse(`--workers must be container, not '${values.workers}'`)
  const patterns = wanted.length === 0 ? ['test/**/*.test.ts', 'packages/*/test/**/*.test.ts'] : wanted.map(toPattern)
  // Some packages are published with their tests.
  const paths = patterns.flatMap(pattern => globSync(pattern, { exclude: ['**/node_modules/**'] }))
  const files = [...new Set(paths)].sort()
  if (files.length === 0) refuse(`no test file matches ${patterns.join(' ')}`)
  return {
    files,
    isWhole: wanted.length === 0,
    onlyContainers: values.workers === 'container',
    grep: values.grep.map(toExpression),
    list: values.list,
    watch: values.watch,
  }
}

function parsed() {
  try {
    return parseArgs({
      options: {
        workers: { type: 'string', default: '' },
        grep: { type: 'string', multiple: true, default: [] },
        list: { type: 'boolean', default: false },
        watch: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
      allowPositionals: true,
    })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function toPattern(name: string): string {
  const path = name.replace(/\/$/, '')
  if (path.endsWith('.test.ts')) return path
  return existsSync(path) ? `${path}/**/*.test.ts` : `{test,packages}/**/${path}{/**/*,*}.test.ts`
}

function toExpression(pattern: string): RegExp {
  try {
    return new RegExp(pattern)
  } catch {
    return refuse(`--grep takes a regular expression, not '${pattern}'`)
  }
}

function refuse(problem: string): never {
  console.error(problem)
  process.exit(64)
}
