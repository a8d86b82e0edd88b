/** Which licenses the packages that Runyard uses may have. */

/** Licenses that ask for no more than their text beside the program. */
const PERMITTED = new Set(['MIT', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', '0BSD', 'Unlicense', 'CC0-1.0'])

/** Packages whose manifest does not name their license in a form that npm reads, and where they do. */
const SAID_ELSEWHERE: Readonly<Record<string, string>> = {
  buildcheck: 'MIT, in its file LICENSE',
  'cpu-features': 'MIT, in its file LICENSE',
  ssh2: 'MIT, in its file LICENSE',
}

/** Packages with another license, or none, which are on the machines of those who work on Runyard alone. */
const ONLY_FOR_TESTS: Readonly<Record<string, string>> = {
  argparse: 'Python-2.0, which is permissive: a server that benchmarks compare with loads it',
  'axe-core': 'MPL-2.0: the tests load it into a browser, unchanged',
  'runpod-sdk': 'its package names no license: the tests call a server with it',
}

/** A package as it is installed. */
export interface LicensedPackage {
  readonly name: string
  /** What its manifest says, an SPDX expression. */
  readonly license: string | undefined
  /** Whether it is part of nothing that is published. */
  readonly onlyForTests: boolean
}

/** @returns what is wrong with the license of a package, or undefined where nothing is */
export function licenseMistake({ name, license, onlyForTests }: LicensedPackage): string | undefined {
  if (license === undefined ? Object.hasOwn(SAID_ELSEWHERE, name) : isPermitted(license)) return undefined
  if (onlyForTests && Object.hasOwn(ONLY_FOR_TESTS, name)) return undefined
  return `${name} has ${license === undefined ? 'no known license' : `the license ${license}`}`
}

/** @returns the license of a package whose manifest names none, as an SPDX id */
export function licenseSaidElsewhere(name: string): string | undefined {
  return SAID_ELSEWHERE[name]?.split(',')[0]
}

/** The packages that have a line of their own in this file. */
export const EXCEPTIONS: readonly string[] = [...Object.keys(SAID_ELSEWHERE), ...Object.keys(ONLY_FOR_TESTS)]

/** Of `A OR B` one is enough; of `A AND B` both have to be permitted. Anything else is looked at by a person. */
function isPermitted(expression: string): boolean {
  const words = expression.replace(/^\((.*)\)$/, '$1')
  if (words.includes(' AND ')) return words.split(' AND ').every(part => PERMITTED.has(part))
  return words.split(' OR ').some(part => PERMITTED.has(part))
}
