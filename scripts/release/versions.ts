/** The places of the version of Runyard, and the changes of a release to them. */

/** The files of a release: package manifests and the lock file are changed as JSON, the others by these patterns. */
const TEXTS: readonly (readonly [path: string, before: RegExp])[] = [
  ['packages/worker/src/version.ts', /(?<=version = ')[^']+(?=')/],
  ['deploy/helm/runyard/Chart.yaml', /(?<=^version: ).+$/m],
  ['deploy/helm/runyard/Chart.yaml', /(?<=^appVersion: ).+$/m],
  ['docs/guides/kubernetes.md', /(?<=runyard:)\d+\.\d+\.\d+(?:-[\w.]+)?/g],
  ['docs/guides/kubernetes.md', /(?<=image\.tag=)\d+\.\d+\.\d+(?:-[\w.]+)?/g],
  ['docs/reference/compatibility.md', /(?<=^\| `@runyard\/worker` \| )[^ ]+/m],
]
const MANIFESTS = ['package.json', 'packages/worker/package.json']
const VERSION = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?$/

/** True if npm accepts the text as a version. */
export function isVersion(text: string): boolean {
  return VERSION.test(text)
}

/** Negative if `a` is older. A version with a label, such as `1.0.0-rc.1`, is older than the one without. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [VERSION.exec(a)!, VERSION.exec(b)!]
  for (const part of [1, 2, 3]) if (left[part] !== right[part]) return Number(left[part]) - Number(right[part])
  if (left[4] === right[4]) return 0
  if (left[4] === undefined || right[4] === undefined) return left[4] === undefined ? 1 : -1
  return left[4].localeCompare(right[4], 'en', { numeric: true })
}

/** The files and the notes of a release. */
export interface ReleaseChanges {
  /** The new texts by their paths from the root. */
  readonly files: Readonly<Record<string, string>>
  /** The section of the changelog. */
  readonly notes: string
}

/** The changes of a release to the present texts. @throws if a place of the version is missing */
export function changedFiles(read: (path: string) => string, version: string, date: string): ReleaseChanges {
  const { text, notes } = releasedChangelog(read('CHANGELOG.md'), version, date)
  const files: Record<string, string> = { 'CHANGELOG.md': text }
  for (const path of MANIFESTS) files[path] = withVersion(read(path), version)
  files['package-lock.json'] = lockWithVersion(read('package-lock.json'), version)
  for (const [path, pattern] of TEXTS) {
    const old = files[path] ?? read(path)
    // A pattern with `g` keeps its position between calls.
    if (old.search(pattern) < 0) throw new Error(`${path} has no version that matches ${pattern}`)
    files[path] = old.replace(pattern, version)
  }
  return { files, notes }
}

/** The changelog with its unreleased section under the version, and that section. */
export function releasedChangelog(
  changelog: string,
  version: string,
  date: string,
): { readonly text: string; readonly notes: string } {
  const heading = '## [Unreleased]\n'
  const start = changelog.indexOf(heading)
  if (start < 0) throw new Error('the changelog has no section of unreleased changes')
  const rest = changelog.slice(start + heading.length)
  const end = /^## /m.exec(rest)?.index ?? rest.length
  const notes = rest.slice(0, end).trim()
  if (notes === '') throw new Error('the changelog has no unreleased changes')
  const text = `${changelog.slice(0, start)}${heading}\n## [${version}] - ${date}\n\n${notes}\n`
  return { text: end === rest.length ? text : `${text}\n${rest.slice(end)}`, notes: `${notes}\n` }
}

function withVersion(text: string, version: string): string {
  return `${JSON.stringify({ ...JSON.parse(text), version }, null, 2)}\n`
}

function lockWithVersion(text: string, version: string): string {
  const lock = JSON.parse(text) as Versioned & { readonly packages: Record<string, Versioned> }
  lock.version = version
  lock.packages['']!.version = version
  lock.packages['packages/worker']!.version = version
  return `${JSON.stringify(lock, null, 2)}\n`
}

interface Versioned {
  version?: string
}
