/** The Node that runs everything is the one that was reviewed (docs/adr/0036-who-publishes-the-pinned-node.md). */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import recorded from '../contract/reference/node-hashes.json' with { type: 'json' }
import { officialNode } from '../support/official-node.ts'

const hashes: Readonly<Record<string, string>> = recorded.sha256

test('the installed Node has the bytes that were recorded for its package', () => {
  const name = basename(dirname(dirname(process.execPath)))
  assert.equal(process.versions.node, recorded.version)
  assert.equal(fileHash(process.execPath), hashes[name], name)
})

test('each package of the pinned Node has a recorded hash, of the pinned version', () => {
  const { optionalDependencies } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const versions = Object.fromEntries(Object.keys(hashes).map(name => [name, recorded.version]))
  assert.deepEqual(optionalDependencies, versions)
})

if (officialNode !== undefined) {
  test("the installed Node has the bytes of Node's own release", () => {
    assert.equal(fileHash(process.execPath), fileHash(join(officialNode ?? '', 'bin', 'node')))
  })
}

function fileHash(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
