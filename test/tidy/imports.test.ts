import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertClean, assertNone, read, sources } from './files.ts'
import {
  findCycles,
  findFolderCycles,
  findForbiddenImports,
  findForbiddenSubjects,
  findImports,
  wallOf,
} from './imports.ts'
import { places, subjects, walls } from './walls.ts'

const walled = sources('src/', 'sim/', 'packages/')

test('every file imports only what its row of the table allows', () => {
  assertClean(walled, findForbiddenImports)
})

test('imports have no cycles', () => {
  const cycles = findCycles(new Map(walled.map(path => [path, read(path)])))
  assertNone(cycles.map(cycle => cycle.join(' -> ')))
})

for (const tree of ['src/drivers/', 'console/', 'packages/', 'scripts/', 'bench/']) {
  test(`imports between the folders of ${tree} have no cycles`, () => {
    const cycles = findFolderCycles(new Map(sources(tree).map(path => [path, read(path)])))
    assertNone(cycles.map(cycle => cycle.join(' -> ')))
  })
}

test('the table names only known places', () => {
  const names = walls.flatMap(wall => [wall.folder, ...wall.project.split(' ')]).map(name => name.replace('!', ''))
  assert.deepEqual(
    names.filter(name => name !== '' && places[name] === undefined),
    [],
  )
})

test('every form of import is found', () => {
  const source = [
    "import a from './1.ts'",
    "import type { b } from './2.ts'",
    'import {\n  c,\n} from "./3.ts"',
    "import './4.ts'",
    "export * from './5.ts'",
    "export type { d } from './6.ts'",
    "const e = await import('./7.ts')",
    "type F = import('./8.ts').F",
    'const g = await import(`./9.ts`)',
    `const h = await import(\`./\${name}.ts\`)`,
    'const i = await import(name)',
  ]
  const specifiers = findImports(source.join('\n')).map(found => found.specifier)
  assert.deepEqual(specifiers, [...Array.from({ length: 9 }, (_, index) => `./${index + 1}.ts`), undefined, undefined])
})

test('imports in comments and strings, and text that looks like an import, do not count', () => {
  const source = `// import a from './a.ts'
    const b = "import c from './c.ts'"
    const d = Array.from('abc')
    const e = { from: './e.ts' }
    const f = import.meta.url`
  assert.deepEqual(findImports(source), [])
})

test('the subjects of a floor import only what their table allows', () => {
  assertClean(walled, findForbiddenSubjects)
})

test('the table of subjects has no cycles: each imports only those above it', () => {
  for (const table of Object.values(subjects)) {
    const names = Object.keys(table)
    for (const [at, [name, allowed]] of Object.entries(table).entries())
      for (const word of allowed.split(' ').filter(Boolean))
        assert.ok(names.indexOf(word) >= 0 && names.indexOf(word) < at, `${name} may import ${word}`)
  }
})

test('an import of another subject is forbidden unless the table has it', () => {
  const findings = (path: string, specifier: string) =>
    findForbiddenSubjects(`import { a } from '${specifier}'`, path).length
  assert.equal(findings('src/core/jobs/job.ts', '../workers/worker.ts'), 1)
  assert.equal(findings('src/core/errors.ts', './jobs/job.ts'), 1)
  assert.equal(findings('src/core/unknown/a.ts', './b.ts'), 1)
  assert.equal(findings('src/services/jobs/jobs.ts', '../workers/fleet.ts'), 1)
  assert.equal(findings('src/services/paging.ts', './jobs/jobs.ts'), 1)
  assert.equal(findings('src/drivers/kubernetes/kubernetes.ts', '../docker/docker.ts'), 1)
  assert.equal(findings('src/drivers/base/log-copy.ts', '../process/process.ts'), 1)
  assert.equal(findings('src/drivers/process/process.ts', '../cage/cage.ts'), 0)
  assert.equal(findings('src/services/workers/fleet.ts', '../jobs/jobs.ts'), 0)
  assert.equal(findings('src/core/openai/openai.ts', '../jobs/job.ts'), 0)
  assert.equal(findings('src/core/jobs/job.ts', '../errors.ts'), 0)
  assert.equal(findings('src/core/jobs/job.ts', './batch.ts'), 0)
})

/** Files, each with an import that the walls forbid. */
const forbidden: [path: string, source: string][] = [
  ['src/core/jobs/job.ts', "import { readFileSync } from 'node:fs'"],
  ['src/core/jobs/job.ts', "import type { Store } from '../../ports/store/store.ts'"],
  ['src/core/jobs/job.ts', "import type { Hono } from 'hono'"],
  ['src/core/jobs/job.ts', 'const a = await import(name)'],
  ['src/ports/clock.ts', "import { z } from 'zod'"],
  ['src/services/jobs/jobs.ts', "import { step } from '../../control/reaper.ts'"],
  ['src/services/jobs/jobs.ts', "import { settings } from '../../config/config.ts'"],
  ['src/api/rest/jobs.ts', "import { sqlite } from '../../store/engines/sqlite.ts'"],
  ['src/api/rest/jobs.ts', "import { createServer } from 'http'"],
  ['src/store/engines/sqlite.ts', "import { spawn } from 'node:child_process'"],
  ['src/drivers/process/process.ts', "import { jobs } from '../../services/jobs/jobs.ts'"],
  ['src/app.ts', "import { sqlite } from './store/engines/sqlite.ts'"],
  ['src/main/server.ts', "import { clock } from '../../sim/clock.ts'"],
  ['src/cli/commands/serve.ts', "import { jobs } from '../../services/jobs/jobs.ts'"],
  ['sim/clock.ts', "import { pool } from '../src/store/engines/postgres.ts'"],
  ['sim/clock.ts', "import { writeFileSync } from 'node:fs'"],
  ['packages/worker/src/index.ts', "import type { Job } from '../../../src/core/jobs/job.ts'"],
  ['src/odd/place.ts', ''],
  ['src/odd.ts', ''],
]

for (const [path, source] of forbidden) {
  test(`${path} is forbidden with ${source || 'its place'}`, () => {
    assert.equal(findForbiddenImports(source, path).length, 1)
  })
}

/** Files, each with an import that the walls allow. */
const allowed: [path: string, source: string][] = [
  ['src/core/jobs/job.ts', "import { z } from 'zod'"],
  ['src/core/jobs/job.ts', "import { AppError } from '../errors.ts'"],
  ['src/events.ts', "import type { JobId } from './core/ids.ts'"],
  ['src/api/graphql/index.ts', "import { costLimitPlugin } from '@escape.tech/graphql-armor-cost-limit'"],
  ['src/api/rest/index.ts', "import { swagger } from '@hono/zod-openapi/extra'"],
  ['src/store/engines/sqlite.ts', "import { readFile } from 'node:fs/promises'"],
  ['src/main/server.ts', "import { sqlite } from '../store/engines/sqlite.ts'"],
  ['src/cli/commands/serve.ts', "import { main } from '../../main/server.ts'"],
  ['sim/clock.ts', "import { notifier } from '../src/system/coordination/notifier.ts'"],
  ['sim/run.ts', "import { parseArgs } from 'node:util'"],
  ['test/core/jobs/job.test.ts', "import { job } from '../../src/core/jobs/job.ts'"],
  ['bench/jobs.ts', "import anything from '@some/package'"],
]

for (const [path, source] of allowed) {
  test(`${path} may have ${source}`, () => {
    assert.deepEqual(findForbiddenImports(source, path), [])
  })
}

test('the runner of the simulator and the tests of packages have rows of their own', () => {
  assert.equal(wallOf('sim/run.ts')?.folder, 'sim/run')
  assert.equal(wallOf('packages/worker/test/a.test.ts')?.folder, 'worker/test')
})

test('a cycle is reported once, as the shortest way around', () => {
  const texts = new Map([
    ['src/a.ts', "import './b.ts'"],
    ['src/b.ts', "import type { C } from './deep/c.ts'"],
    ['src/deep/c.ts', "export * from '../a.ts'\nimport './d.ts'"],
    ['src/deep/d.ts', "import './missing.ts'"],
  ])
  assert.deepEqual(findCycles(texts), [['src/a.ts', 'src/b.ts', 'src/deep/c.ts', 'src/a.ts']])
})

test('two paths to the same file are no cycle', () => {
  const texts = new Map([
    ['a.ts', "import './b.ts'\nimport './c.ts'"],
    ['b.ts', "import './d.ts'"],
    ['c.ts', "import './d.ts'"],
    ['d.ts', ''],
  ])
  assert.deepEqual(findCycles(texts), [])
})

test('folders whose files import each other are a cycle, also without a cycle of files', () => {
  const texts = new Map([
    ['src/a/one.ts', "import '../b/one.ts'"],
    ['src/b/one.ts', ''],
    ['src/b/two.ts', "import '../a/two.ts'"],
    ['src/a/two.ts', "import './one.ts'"],
  ])
  assert.deepEqual(findCycles(texts), [])
  assert.deepEqual(findFolderCycles(texts), [['src/a', 'src/b', 'src/a']])
})
