import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/endpoint-names.ts'
import { printList, printValue } from '../client/printing.ts'
import { type ReleaseFieldChange, type ReleaseWithChanges, releaseDiff } from '../client/release-diff.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { shown } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Adds `runyard endpoints releases <endpoint> [version]`: what changed, and when. */
export function addReleases(group: Command): void {
  const command = group
    .command('releases')
    .argument('<endpoint>', 'the id or the name of an endpoint')
    .argument('[version]', 'one release, with what it changed; 2..5 for what differs between two')
  withConnection(
    command.description('list the changes of an endpoint that its workers had to see, newest first'),
  ).action(async (endpoint: string, version: string | undefined, options: ConnectionOptions) => {
    const answer = await withEndpointName(options, endpoint, id =>
      ask(options, `/v2/serverless/${encodeURIComponent(id)}/releases`),
    )
    const { releases } = (await answer.json()) as { releases: readonly (TableRow & ReleaseWithChanges)[] }
    if (version === undefined) return printList(options, releases, RESOURCE_COLUMNS.releases, 'releases')
    const range = /^(\d{1,9})\.\.(\d{1,9})$/.exec(version)
    if (range !== null) return printDiff(options, endpoint, releases, Number(range[1]), Number(range[2]))
    const release = releaseOf(releases, endpoint, version)
    if (wantsJson(options)) return printValue(options, release)
    printText(release.diff.length === 0 ? 'the first release, or new workers alone\n' : release.diff.map(text).join(''))
  })
}

function releaseOf<Row extends ReleaseWithChanges>(releases: readonly Row[], endpoint: string, version: string): Row {
  const release = releases.find(row => String(row.version) === version)
  if (release !== undefined) return release
  throw new CliError(`${endpoint} has no release ${version}; it may be too old`, EXIT.notFound)
}

function printDiff(
  options: ConnectionOptions,
  endpoint: string,
  releases: readonly ReleaseWithChanges[],
  from: number,
  to: number,
): void {
  if (from >= to) throw new CliError(`the first release has to be the older one, as in ${to}..${from}`, EXIT.usage)
  for (const version of [from, to]) releaseOf(releases, endpoint, String(version))
  const changes = releaseDiff(releases, from, to)
  if (wantsJson(options)) for (const change of changes) printText(`${JSON.stringify(change)}\n`)
  else printText(changes.length === 0 ? 'they do not differ\n' : changes.map(text).join(''))
}

function text({ field, old, new: now }: ReleaseFieldChange): string {
  return `${field}\n  - ${shown(old)}\n  + ${shown(now)}\n`
}
