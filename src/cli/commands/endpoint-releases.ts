import type { Command } from 'commander'
import { answerValue } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { withEndpointName } from '../client/names.ts'
import { printList, printValue } from '../client/printing.ts'
import { type ReleaseFieldChange, type ReleaseWithChanges, releaseDiff } from '../client/release-diff.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import type { TableRow } from '../terminal/table.ts'
import { shown } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'

/** A release as the list has it. */
type ListedRelease = TableRow & ReleaseWithChanges

/** A release with the configuration of its workers, by the names of REST. */
interface FullRelease extends ListedRelease {
  /** Null after its removal. */
  readonly configuration: TableRow | null
}

/** Adds `runyard endpoints releases <endpoint> [version]`: changes and their times. */
export function addReleases(group: Command): void {
  const command = group
    .command('releases')
    .argument('<endpoint>', 'the id or the name of an endpoint')
    .argument('[version]', 'one release, with its configuration; 2..5 for what differs')
  withConnection(
    command.description('list the changes of an endpoint that its workers had to see, newest first'),
  ).action(async (endpoint: string, version: string | undefined, options: ConnectionOptions) => {
    const range = /^(\d{1,9})\.\.(\d{1,9})$/.exec(version ?? '')
    if (version !== undefined && range === null) return printRelease(options, endpoint, version)
    const { releases, rollout } = await listReleases(options, endpoint)
    if (range === null) {
      printList(options, releases, RESOURCE_COLUMNS.releases, 'releases')
      if (rollout.state === 'CANARY' && !wantsJson(options))
        printText(
          `release ${releases[0]!.version} is a canary with ${rollout.canary} % of the workers, release ${rollout.workingVersion} goes on\n`,
        )
      if (rollout.state === 'STOPPED' && !wantsJson(options))
        printText(`the rollout has stopped, release ${rollout.workingVersion} goes on: ${rollout.reason}\n`)
      if (rollout.failures !== null && !wantsJson(options))
        printText(`to let it go on all the same: runyard endpoints promote ${endpoint} ${releases[0]!.version}\n`)
      return
    }
    printDiff(options, endpoint, releases, Number(range[1]), Number(range[2]))
  })
}

/** Adds `runyard endpoints rollback <endpoint> [version]`: back to an older release. */
export function addRollback(group: Command): void {
  const command = group
    .command('rollback')
    .argument('<endpoint>', 'the id or the name of an endpoint')
    .argument('[version]', 'an older release; the last one that worked, or the one before, unless given')
  withConnection(
    command.description('go back to an older release: a new one gets its configuration, and its exact image'),
  ).action(async (endpoint: string, version: string | undefined, options: ConnectionOptions) => {
    const to = version ?? String(previousVersion(await listReleases(options, endpoint), endpoint))
    const answer = await withEndpointName(options, endpoint, id =>
      ask(options, `${releasesPath(id)}/${encodeURIComponent(to)}/rollback`, { method: 'POST' }),
    )
    const release = await answerValue<FullRelease>(answer)
    if (wantsJson(options)) return printValue(options, release)
    printText(`${endpoint} goes back to release ${to} with the new release ${shown(release.version)}\n`)
    printText(changesText(release))
  })
}

/**
 * Adds `runyard endpoints promote <endpoint> [version]`: a canary, or a release that was stopped for its failures,
 * replaces the release before it.
 */
export function addPromote(group: Command): void {
  const command = group
    .command('promote')
    .argument('<endpoint>', 'the id or the name of an endpoint')
    .argument('[version]', 'the release that is a canary or was stopped; the newest one unless given')
  withConnection(
    command.description(
      'make a canary an ordinary release, or let one go on that was stopped for its failures: its workers replace those of the one before',
    ),
  ).action(async (endpoint: string, version: string | undefined, options: ConnectionOptions) => {
    const of = version ?? String((await listReleases(options, endpoint)).releases[0]?.version)
    const answer = await withEndpointName(options, endpoint, id =>
      ask(options, `${releasesPath(id)}/${encodeURIComponent(of)}/promote`, { method: 'POST' }),
    )
    const release = await answerValue<FullRelease>(answer)
    if (wantsJson(options)) return printValue(options, release)
    printText(`release ${of} of ${endpoint} is promoted: its workers replace the others\n`)
  })
}

function releasesPath(id: string): string {
  return `/v2/serverless/${encodeURIComponent(id)}/releases`
}

/** The server's list of all releases. */
interface ReleaseList {
  readonly rollout: {
    readonly state: string
    readonly reason: string | null
    readonly workingVersion: number | null
    readonly canary: number | null
    /** Null unless it was stopped because it failed its jobs or requests. */
    readonly failures: object | null
  }
  readonly releases: readonly ListedRelease[]
}

async function listReleases(options: ConnectionOptions, endpoint: string): Promise<ReleaseList> {
  const answer = await withEndpointName(options, endpoint, id => ask(options, releasesPath(id)))
  return answerValue<ReleaseList>(answer)
}

/** The release that works while the rollout of the present one is stopped, else the one before. */
function previousVersion({ rollout, releases: [, second] }: ReleaseList, endpoint: string): number {
  if (rollout.workingVersion !== null) return rollout.workingVersion
  if (second === undefined) throw new CliError(`${endpoint} has no release before the present one`, EXIT.notFound)
  return second.version
}

async function printRelease(options: ConnectionOptions, endpoint: string, version: string): Promise<void> {
  const answer = await withEndpointName(options, endpoint, id =>
    ask(options, `${releasesPath(id)}/${encodeURIComponent(version)}`),
  )
  const release = await answerValue<FullRelease>(answer)
  if (wantsJson(options)) return printValue(options, release)
  const { configuration } = release
  const fields = configuration === null ? 'no longer kept\n' : fieldTexts(configuration).join('')
  printText(`${changesText(release)}\nconfiguration\n${fields.replaceAll(/^(?=.)/gm, '  ')}`)
}

function changesText({ diff }: ReleaseWithChanges): string {
  return diff.length === 0 ? 'the first release, or new workers alone\n' : diff.map(text).join('')
}

function fieldTexts({ env, ...rest }: TableRow): string[] {
  const variables = Object.entries(env as Record<string, string>).map(([name, value]) => [`env.${name}`, value])
  return [...Object.entries(rest), ...variables].map(([field, value]) => `${field}: ${shown(value)}\n`)
}

function printDiff(
  options: ConnectionOptions,
  endpoint: string,
  releases: readonly ListedRelease[],
  from: number,
  to: number,
): void {
  if (from >= to) throw new CliError(`the first release must be the older one, as in ${to}..${from}`, EXIT.usage)
  for (const version of [from, to]) requireRelease(releases, endpoint, version)
  const changes = releaseDiff(releases, from, to)
  if (wantsJson(options)) for (const change of changes) printText(`${JSON.stringify(change)}\n`)
  else printText(changes.length === 0 ? 'they do not differ\n' : changes.map(text).join(''))
}

function requireRelease(releases: readonly ListedRelease[], endpoint: string, version: number): void {
  if (releases.some(row => row.version === version)) return
  throw new CliError(`${endpoint} has no release ${version}; it may be too old`, EXIT.notFound)
}

function text({ field, old, new: now }: ReleaseFieldChange): string {
  return `${field}\n  - ${shown(old)}\n  + ${shown(now)}\n`
}
