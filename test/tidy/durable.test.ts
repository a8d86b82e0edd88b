import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DIRECT_WRITERS, findDirectWrites } from './durable.ts'
import { assertClean, files, read, sources } from './files.ts'

test('files that must survive a power cut are written in one place', () => {
  const checked = sources('src/').filter(path => DIRECT_WRITERS[path] === undefined)
  assertClean(checked, findDirectWrites)
})

test('every exception is a file that needs one', () => {
  for (const path of Object.keys(DIRECT_WRITERS)) {
    assert.ok(files.includes(path) && findDirectWrites(read(path)).length > 0, path)
  }
})

test('writers are found whatever form the import has, and readers are allowed', () => {
  const found = (source: string) => findDirectWrites(source).map(({ what }) => what)
  assert.deepEqual(found("import { readFileSync, writeFileSync as write } from 'node:fs'"), ['writeFileSync'])
  assert.deepEqual(found("import {\n  open,\n  type FileHandle,\n} from 'node:fs/promises'"), ['open'])
  assert.deepEqual(found("import fs from 'fs'"), ['import of all of fs'])
  assert.deepEqual(found("import * as fs from 'node:fs'"), ['import of all of fs'])
  assert.deepEqual(found("import { readFile, rm } from 'node:fs/promises'\nimport type { Stats } from 'node:fs'"), [])
})
