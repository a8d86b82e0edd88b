/** The releases of an endpoint: the rollout of the newest, the changes of each, and the rollback. */
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { Endpoint, Release, ListEndpointReleasesResponse as ReleaseList } from '../../../client/api-types.d.ts'
import { type Resource, useResource } from '../../../client/resource.ts'
import { mayManage, who } from '../../../client/session.ts'
import { releaseTopic } from '../../../client/topics.ts'
import { plural } from '../../../format.ts'
import { announce } from '../../../parts/announce.tsx'
import { Ago, Button, Loaded, Section, State } from '../../../parts/basic.tsx'
import { Confirm } from '../../../parts/dialog.tsx'
import { setQuery } from '../../../router.ts'
import { valueText } from '../../endpoint-form/difference.ts'
import { DifferenceList } from '../../endpoint-form/parts.tsx'
import { Compare, ReleaseComparison } from './compare.tsx'
import { describeRelease } from './release-words.ts'
import { Rollout } from './rollout.tsx'
import { ReleaseTraffic } from './traffic.tsx'

/** Limit of changes that are shown of each release. */
const MAX_SHOWN = 12

/** A tab of an endpoint. */
export function Releases({ endpoint: { id } }: { readonly endpoint: Endpoint }) {
  const [back, setBack] = useState<number | null>(null)
  const releases: Resource<ReleaseList> = useResource(
    `releases tab ${id}`,
    signal => api('GET /v2/serverless/{id}/releases', { path: { id }, signal }),
    { on: releaseTopic(id), everyMs: 15_000 },
  )
  return (
    <Loaded of={releases}>
      {list => (
        <>
          <Rollout id={id} of={list} reload={releases.reload} onBack={setBack} />
          <ReleaseTraffic id={id} of={list} />
          <Section
            title="Releases"
            actions={
              list.releases.length < 2 ? undefined : (
                <Button onPress={() => setQuery({ compare: `${list.releases[1]!.version}..${list.endpointVersion}` })}>
                  Compare two releases
                </Button>
              )
            }
          >
            <ol class="releases" aria-label="Releases">
              {list.releases.map(release => (
                <Row key={release.id} of={release} list={list} onBack={setBack} />
              ))}
            </ol>
          </Section>
          <Compare id={id} versions={list.releases.flatMap(({ version }) => (version === null ? [] : [version]))} />
          {back === null ? null : (
            <Rollback
              id={id}
              from={list.endpointVersion ?? 0}
              to={back}
              onClose={() => setBack(null)}
              onDone={releases.reload}
            />
          )}
        </>
      )}
    </Loaded>
  )
}

function Row({
  of,
  list,
  onBack,
}: {
  readonly of: Release
  readonly list: ReleaseList
  readonly onBack: (version: number) => void
}) {
  const { version, createdAt, createdByUserId, workerCount, diff, exactImage, canary } = of
  const isNow = version === list.endpointVersion
  const { account } = who.value!
  const by = createdByUserId === account.id ? account.name : createdByUserId
  const changed = diff.map(one => ({ field: one.field, old: valueText(one.old), new: valueText(one.new) }))
  return (
    <li class="release">
      <b>v{version}</b>
      <div>
        <span>
          {describeRelease(of)} {canary === null ? null : <State tone="wait">canary, {canary}%</State>}
        </span>
        <p class="faint">
          <Ago at={createdAt} suffix=" ago" />
          {by === null ? '' : ` by ${by}`} · {plural(workerCount, 'worker')}
          {isNow ? ' · newest' : ''}
        </p>
        {exactImage === null ? null : (
          <p class="faint">
            Image <code>{exactImage}</code>
          </p>
        )}
      </div>
      <div class="actions">
        {isNow ? null : (
          <Button
            kind="quiet"
            onPress={() => setQuery({ compare: `${version}..${list.endpointVersion}` })}
            aria-label={`Compare version ${version} with the newest`}
          >
            Compare
          </Button>
        )}
        {isNow || version === null || !mayManage('write') ? null : (
          <Button onPress={() => onBack(version)} aria-label={`Roll back to version ${version}`}>
            Roll back
          </Button>
        )}
      </div>
      {changed.length === 0 ? null : (
        <DifferenceList of={changed.slice(0, MAX_SHOWN)} label={`Changes of version ${version}`} />
      )}
      {changed.length <= MAX_SHOWN ? null : (
        <p class="rest faint">{plural(changed.length - MAX_SHOWN, 'more change')}; the comparison has all</p>
      )}
    </li>
  )
}

function Rollback({
  id,
  from,
  to,
  onClose,
  onDone,
}: {
  readonly id: string
  readonly from: number
  readonly to: number
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  return (
    <Confirm
      title={`Roll back to version ${to}?`}
      action={`Roll back to version ${to}`}
      onConfirm={async () => {
        const path = { id, version: String(to) }
        const { version } = await api('POST /v2/serverless/{id}/releases/{version}/rollback', { path })
        announce(`Version ${version} has the configuration of version ${to}`)
        onDone()
      }}
      onClose={onClose}
    >
      <p>
        Creates a new release with the same exact image, whose workers replace the running ones. The name, the numbers
        of workers, the scaling and timeouts stay.
      </p>
      <ReleaseComparison id={id} old={from} now={to} />
    </Confirm>
  )
}
