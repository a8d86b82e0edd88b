import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ModelError } from '../../../src/core/models/model-problem.ts'
import { diskProblem } from '../../../src/system/models/blob-download.ts'

const thrown = (code: string) => Object.assign(new Error(code), { code, syscall: 'write' })

test('a disk without room is distinguished from one that cannot be written, and from other problems', () => {
  for (const code of ['ENOSPC', 'EDQUOT']) {
    const found = diskProblem(thrown(code), 7)
    assert.ok(found instanceof ModelError)
    assert.deepEqual(found.problem, { kind: 'disk_full', neededBytes: 7 })
  }
  const found = diskProblem(thrown('EROFS'), 7)
  assert.deepEqual(found instanceof ModelError && found.problem, { kind: 'disk_failed', code: 'EROFS' })
  const other = new TypeError('a mistake')
  assert.equal(diskProblem(other, 7), other)
})
