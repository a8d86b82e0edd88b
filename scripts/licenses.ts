/** The permitted licenses of the packages that Runyard uses. */

/** Licenses that only require their text beside the program. */
const PERMITTED = new Set([
  'BlueOak-1.0.0',
  'MIT',
  'MIT-0',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  '0BSD',
  'Unlicense',
  'CC0-1.0',
])

/** Packages with another license or without one, which only developers of Runyard install. */
const ONLY_FOR_TESTS: Readonly<Record<string, string>> = {
  argparse: 'Python-2.0, which is permissive: a server that benchmarks compare with loads it',
  'axe-core': 'MPL-2.0: the tests load it into a browser, unchanged',
  'runpod-sdk': 'its package names no license: the tests call a server with it',
}

/** An installed package. */
export interface LicensedPackage {
  readonly name: string
  /** SPDX expression in its manifest. */
  readonly license: string | undefined
  /** True if it is not part of the published program. */
  readonly onlyForTests: boolean
}

/** @returns the problem with the license of a package; undefined for a permitted one */
export function licenseMistake({ name, license, onlyForTests }: LicensedPackage): string | undefined {
  if (license !== undefined && isPermitted(license)) return undefined
  if (onlyForTests && Object.hasOwn(ONLY_FOR_TESTS, name)) return undefined
  return `${name} has ${license === undefined ? 'no known license' : `the license ${license}`}`
}

/** The packages with their own line in this file. */
export const EXCEPTIONS: readonly string[] = Object.keys(ONLY_FOR_TESTS)

/** True for `A OR B` if one is permitted, and for `A AND B` if both are. Other expressions need a person. */
function isPermitted(expression: string): boolean {
  const words = expression.replace(/^\((.*)\)$/, '$1')
  if (words.includes(' AND ')) return words.split(' AND ').every(part => PERMITTED.has(part))
  return words.split(' OR ').some(part => PERMITTED.has(part))
}

/** The fields of the manifest of a package about its license. */
export interface Manifest {
  readonly name: string
  readonly version: string
  readonly license?: string
  readonly author?: string | { readonly name: string }
}

/**
 * The text of the license of a package, which has to be beside each program that has its files.
 * @param file its file of the license, if it has one
 * @param readme its README, which may have the text instead
 * @throws if the package has no text
 */
export function licenseText(manifest: Manifest, file: string | undefined, readme: string | undefined): string {
  if (file !== undefined) return file.trim()
  const section = /^#+ *licen[cs]e\b.*\n+([\s\S]*?)(?=^#|(?![\s\S]))/im.exec(readme ?? '')?.[1]?.trim()
  if (section?.includes('Permission is hereby granted')) return section
  const { name, license, author } = manifest
  if (license !== 'MIT') throw new Error(`${name} has the license ${license} and no text of it`)
  const holder = typeof author === 'string' ? author : author?.name
  return `Copyright (c) ${holder ?? `the authors of ${name}`}\n\n${MIT}`
}

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`
