/** The place of control groups of workers without a cage. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { test } from 'node:test'
import { findPlainGroups } from '../../../src/drivers/cage/limits.ts'

const ROOT = '/sys/fs/cgroup'
const HIERARCHY = existsSync(`${ROOT}/unified/cgroup.procs`) ? `${ROOT}/unified` : ROOT
const UNIT = `runyard-trial-${process.pid}.service`

/** True where this user may make the groups of the test. */
function makeUnit(): boolean {
  try {
    mkdirSync(`${HIERARCHY}/${UNIT}/server`, { recursive: true })
    return existsSync(`${HIERARCHY}/${UNIT}/cgroup.freeze`)
  } catch {
    return false
  }
}

test('a worker without a cage gets its group inside of the unit of systemd, with delegation and without', context => {
  if (!makeUnit()) return context.skip('no control groups of version 2 can be made here')
  context.after(() => {
    rmdirSync(`${HIERARCHY}/${UNIT}/server`)
    rmdirSync(`${HIERARCHY}/${UNIT}`)
  })
  assert.equal(findPlainGroups(ROOT, `0::/${UNIT}\n`), `${HIERARCHY}/${UNIT}`)
  assert.equal(findPlainGroups(ROOT, `0::/${UNIT}/server\n`), `${HIERARCHY}/${UNIT}`)
  assert.equal(findPlainGroups(ROOT, '1:memory:/x\n'), null, 'a machine without version 2')
})
