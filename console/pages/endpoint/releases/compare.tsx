/** Differences between two releases. */
import { api } from '../../../client/api.ts'
import { useResource } from '../../../client/resource.ts'
import { Loaded } from '../../../parts/basic.tsx'
import { Dialog } from '../../../parts/dialog.tsx'
import { SelectField } from '../../../parts/form.tsx'
import { query, setQuery } from '../../../router.ts'
import { differences } from '../../endpoint-form/difference.ts'
import { DifferenceList } from '../../endpoint-form/parts.tsx'
import { readVersions } from './release-words.ts'

/** The two releases that the address names; nothing if it names none. */
export function Compare({ id, versions }: { readonly id: string; readonly versions: readonly number[] }) {
  const comparedVersions = readVersions(query.value.get('compare'))
  if (comparedVersions === null) return null
  const [old, now] = comparedVersions
  const select = (label: string, value: number, of: (version: string) => string) => (
    <SelectField
      label={label}
      value={String(value)}
      options={[...new Set([...versions, value])].map(version => [String(version), `Version ${version}`] as const)}
      onChange={version => setQuery({ compare: of(version) })}
    />
  )
  return (
    <Dialog kind="drawer" title="Compare two releases" onClose={() => setQuery({ compare: null })}>
      <div class="tools">
        {select('From', old, version => `${version}..${now}`)}
        {select('To', now, version => `${old}..${version}`)}
      </div>
      <ReleaseComparison id={id} old={old} now={now} />
    </Dialog>
  )
}

/** The members of the configurations of two releases that differ. */
export function ReleaseComparison({
  id,
  old,
  now,
}: {
  readonly id: string
  readonly old: number
  readonly now: number
}) {
  const read = (version: number, signal: AbortSignal) =>
    api('GET /v2/serverless/{id}/releases/{version}', { path: { id, version: String(version) }, signal })
  const releases = useResource(`releases tab ${id} ${old}..${now}`, signal =>
    Promise.all([read(old, signal), read(now, signal)]),
  )
  return (
    <Loaded of={releases}>
      {([before, after]) => {
        const deletedReleases = [before, after].filter(({ configuration }) => configuration === null)
        if (deletedReleases.length > 0)
          return (
            <p class="notice">
              The configuration of version {deletedReleases.map(({ version }) => version).join(' and ')} was deleted.
            </p>
          )
        const changed = differences(before.configuration ?? {}, after.configuration ?? {})
        if (changed.length === 0) return <p class="faint">Their configurations are the same.</p>
        return (
          <DifferenceList
            of={changed}
            label={`Differences between version ${old} and version ${now}`}
            names={[`Version ${old}`, `Version ${now}`]}
          />
        )
      }}
    </Loaded>
  )
}
