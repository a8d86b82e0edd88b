/** Finds vague folder names, unfinished work, focused tests, addresses of one machine and unpinned versions. */
import { codeOnly, type Finding, findingsOf } from './scan.ts'

const VAGUE = new Set(['utils', 'helpers', 'common', 'lib', 'shared'])

/** The folders of the paths whose names do not say what is in them. */
export function findVagueFolders(paths: string[]): string[] {
  const folders = paths.flatMap(path => {
    const parts = path.split('/').slice(0, -1)
    return parts.flatMap((part, index) => (VAGUE.has(part) ? [parts.slice(0, index + 1).join('/')] : []))
  })
  return [...new Set(folders)]
}

/** Marks of unfinished work, in comments, too. */
export function findLeftovers(source: string): Finding[] {
  return findingsOf(source, /\b(?:TODO|FIXME|XXX)\b/g, match => match[0])
}

/** Focused tests, which keep all others from running. */
export function findFocusedTests(source: string): Finding[] {
  return findingsOf(codeOnly(source), /\.only\s*\(|\bonly\s*:\s*true\b/g, match => match[0])
}

/** Patterns in parts, so that this file does not match them itself. */
const ADDRESSES: [what: string, pattern: RegExp][] = [
  ['a path of one machine', new RegExp(String.raw`(?<![\w.})-])/${'work'}/`, 'g')],
  ['a path of one person', new RegExp(String.raw`(?<![\w.})-])/(?:${'ho'}me|${'Us'}ers)/\w`, 'g')],
  ['the address of a registry', new RegExp(String.raw`registry\.(?:${'npm'}js\.org|${'yarn'}pkg\.com)`, 'g')],
  ['the address of a registry', new RegExp(String.raw`npm\.${'pkg'}\.github\.com|^\s*registry\s*=`, 'gm')],
]

/** Paths and addresses that are valid on one machine only. */
export function findAddresses(text: string): Finding[] {
  return ADDRESSES.flatMap(([what, pattern]) => findingsOf(text, pattern, match => `${what}: ${match[0].trim()}`))
}

/** Dependencies of a package.json that are not pinned to one version. */
export function findUnpinnedVersions(manifest: string): Finding[] {
  const parsed = JSON.parse(manifest) as Record<string, Record<string, string> | undefined>
  const kinds = ['dependencies', 'devDependencies', 'optionalDependencies']
  return kinds.flatMap(kind =>
    Object.entries(parsed[kind] ?? {})
      .filter(([, version]) => !/^(?:\d+\.\d+\.\d+(?:-[\w.-]+)?|file:vendor\/[\w.-]+)$/.test(version))
      .map(([name, version]) => ({ line: lineOf(manifest, name), what: `${name} ${version} is not one version` })),
  )
}

interface Locked {
  version?: string
  resolved?: string
  integrity?: string
  link?: boolean
}

/** Packages of a package-lock.json without a hash, or with the address that they were fetched from. */
export function findLockMistakes(lock: string): Finding[] {
  const packages = (JSON.parse(lock) as { packages: Record<string, Locked> }).packages
  return Object.entries(packages).flatMap(([name, entry]) => {
    const line = lineOf(lock, name)
    const fetched = name.includes('node_modules/') && entry.link !== true
    return [
      ...(/^https?:/.test(entry.resolved ?? '') ? [{ line, what: `${name} names where it was fetched` }] : []),
      ...(fetched && !entry.integrity?.startsWith('sha512-') ? [{ line, what: `${name} has no hash` }] : []),
    ]
  })
}

/** Dependencies whose version in the lock file differs from that in package.json. */
export function findStaleLock(manifest: string, lock: string): Finding[] {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(manifest) as Partial<
    Record<string, Record<string, string>>
  >
  const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> }
  const all = { ...dependencies, ...devDependencies, ...optionalDependencies }
  return Object.entries(all).flatMap(([name, version]) => {
    const entry = packages[`node_modules/${name}`]
    const held = entry?.link === true ? packages[entry.resolved ?? '']?.version : entry?.version
    return held === version ? [] : [{ line: lineOf(lock, name), what: `${name} is locked at ${held}, not ${version}` }]
  })
}

function lineOf(text: string, key: string): number {
  return (
    Math.max(
      0,
      text.split('\n').findIndex(line => line.includes(`"${key}":`)),
    ) + 1
  )
}
