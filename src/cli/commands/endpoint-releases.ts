import type { Command } from 'commander'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/endpoint-names.ts'
import { printList, printValue } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { shown } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

interface Change {
  readonly field: string
  readonly old: unknown
  readonly new: unknown
}

/** Adds `runyard endpoints releases <endpoint> [version]`: what changed, and when. */
export function addReleases(group: Command): void {
  const command = group
    .command('releases')
    .argument('<endpoint>', 'the id or the name of an endpoint')
    .argument('[version]', 'one release, with what it changed')
  withConnection(
    command.description('list the changes of an endpoint that its workers had to see, newest first'),
  ).action(async (endpoint: string, version: string | undefined, options: ConnectionOptions) => {
    const answer = await withEndpointName(options, endpoint, id =>
      ask(options, `/v2/serverless/${encodeURIComponent(id)}/releases`),
    )
    const { releases } = (await answer.json()) as { releases: readonly (TableRow & { diff: readonly Change[] })[] }
    if (version === undefined) return printList(options, releases, RESOURCE_COLUMNS.releases, 'releases')
    const release = releases.find(row => String(row.version) === version)
    if (release === undefined)
      throw new CliError(`${endpoint} has no release ${version}; it may be too old`, EXIT.notFound)
    if (wantsJson(options)) return printValue(options, release)
    printText(release.diff.length === 0 ? 'the first release, or new workers alone\n' : release.diff.map(text).join(''))
  })
}

function text({ field, old, new: now }: Change): string {
  return `${field}\n  - ${shown(old)}\n  + ${shown(now)}\n`
}
