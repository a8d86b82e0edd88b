/** The licenses of all packages that Runyard uses, as the lock files have them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EXCEPTIONS, type LicensedPackage, licenseMistake } from '../../scripts/licenses.ts'
import { assertNone, files, read } from './files.ts'

interface Locked {
  readonly name?: string
  readonly license?: string
  readonly dev?: boolean
  readonly link?: boolean
}

/** Lock files whose packages are all for tests, for measurements or for the pages of the documentation. */
const UNPUBLISHED = /^(?:test|bench|docs)\//

function packagesOf(path: string): LicensedPackage[] {
  const { packages } = JSON.parse(read(path)) as { packages: Record<string, Locked> }
  return Object.entries(packages).flatMap(([folder, { license, dev, link }]) => {
    const name = folder.split('node_modules/').at(-1)!
    if (link === true || !folder.includes('node_modules/')) return []
    return [{ name, license, onlyForTests: UNPUBLISHED.test(path) || dev === true }]
  })
}

const locks = files.filter(path => path.endsWith('package-lock.json'))

for (const path of locks)
  test(`${path}: no package has an unknown license, or one that asks for more than its text`, () => {
    assertNone(packagesOf(path).flatMap(one => licenseMistake(one) ?? []))
  })

test('each exception is about a package that is used', () => {
  const used = new Set(locks.flatMap(path => packagesOf(path).map(({ name }) => name)))
  assertNone(EXCEPTIONS.filter(name => !used.has(name)))
})

test('a license that nobody has looked at is a mistake, and so is one for tests in what is published', () => {
  const mistake = (license: string | undefined, name = 'some', onlyForTests = false) =>
    licenseMistake({ name, license, onlyForTests })
  assert.equal(mistake('MIT'), undefined)
  assert.equal(mistake('(MIT OR GPL-3.0-only)'), undefined)
  assert.equal(mistake('MIT AND GPL-3.0-only'), 'some has the license MIT AND GPL-3.0-only')
  assert.equal(mistake('GPL-3.0-only', 'some', true), 'some has the license GPL-3.0-only')
  assert.equal(mistake(undefined), 'some has no known license')
  assert.equal(mistake('MPL-2.0', 'axe-core', true), undefined)
  assert.equal(mistake('MPL-2.0', 'axe-core', false), 'axe-core has the license MPL-2.0')
})
