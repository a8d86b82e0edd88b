import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findLooseWrites, LOOSE_WRITERS } from './durable.ts'
import { assertClean, files, read, sources } from './files.ts'

test('files that have to survive a power cut are written in one place', () => {
  const held = sources('src/').filter(path => LOOSE_WRITERS[path] === undefined)
  assertClean(held, findLooseWrites)
})

test('every exception is a file that needs one', () => {
  for (const path of Object.keys(LOOSE_WRITERS)) {
    assert.ok(files.includes(path) && findLooseWrites(read(path)).length > 0, path)
  }
})

test('writers are found whatever form the import has, and readers are let pass', () => {
  const found = (source: string) => findLooseWrites(source).map(({ what }) => what)
  assert.deepEqual(found("import { readFileSync, writeFileSync as write } from 'node:fs'"), ['writeFileSync'])
  assert.deepEqual(found("import {\n  open,\n  type FileHandle,\n} from 'node:fs/promises'"), ['open'])
  assert.deepEqual(found("import fs from 'fs'"), ['import of all of fs'])
  assert.deepEqual(found("import * as fs from 'node:fs'"), ['import of all of fs'])
  assert.deepEqual(found("import { readFile, rm } from 'node:fs/promises'\nimport type { Stats } from 'node:fs'"), [])
})
