/** The releases of an endpoint side by side: requests, errors, times and workers. */
import { useState } from 'preact/hooks'
import { api } from '../../../client/api.ts'
import type { ListEndpointReleasesResponse as ReleaseList } from '../../../client/api-types.d.ts'
import { useResource } from '../../../client/resource.ts'
import { count, duration, percent } from '../../../format.ts'
import { Choice, Loaded, Section, State } from '../../../parts/basic.tsx'
import { Table } from '../../../parts/table.tsx'
import { serverNow } from '../../../server-clock.ts'
import { releaseRole, type Traffic, trafficRows } from './release-words.ts'

const HOUR_MS = 3_600_000
/** Ranges with the interval whose counts are kept for them. */
const RANGES = {
  '1h': ['1 h', HOUR_MS, '1m'],
  '24h': ['24 h', 24 * HOUR_MS, '1h'],
  '7d': ['7 d', 168 * HOUR_MS, '1h'],
} as const
type RangeId = keyof typeof RANGES
/** The width of the longest times, such as "56 min 48 s". */
const TIME_WIDTH = '86px'

/** The newest release and all that had requests or have workers. */
export function ReleaseTraffic({ id, of: list }: { readonly id: string; readonly of: ReleaseList }) {
  const [range, setRange] = useState<RangeId>('1h')
  const [, ms, interval] = RANGES[range]
  const traffic = useResource(
    `release traffic ${id} ${range}`,
    async signal => {
      const from = new Date(serverNow() - ms).toISOString()
      // Pages keep what they read, and this one needs no points.
      return (await api('GET /v2/serverless/{id}/metrics', { path: { id }, query: { interval, from }, signal }))
        .releases
    },
    { everyMs: 15_000 },
  )
  return (
    <Section
      title="Comparison"
      actions={
        <Choice
          label="Time of the comparison"
          value={range}
          options={Object.entries(RANGES).map(([id, [title]]) => [id as RangeId, title] as const)}
          onChange={setRange}
        />
      }
    >
      <Loaded of={traffic}>
        {releases => (
          <Table<Traffic>
            label="Comparison of releases"
            rows={trafficRows(list, releases)}
            rowKey={({ version }) => String(version)}
            height="content"
            empty="No release"
            columns={[
              {
                id: 'version',
                title: 'Release',
                width: 'minmax(190px, 1fr)',
                cell: ({ version }) => {
                  const role = releaseRole(version, list)
                  return (
                    <>
                      <b>v{version}</b> {role === null ? null : <State tone={role.tone}>{role.word}</State>}
                    </>
                  )
                },
              },
              {
                id: 'ended',
                title: 'Requests',
                width: '76px',
                align: 'end',
                isExtra: true,
                cell: ({ ended }) => count(ended),
              },
              {
                id: 'errors',
                title: 'Errors',
                width: '52px',
                align: 'end',
                isFixed: true,
                cell: ({ ended, failed }) => (
                  <span class={failed > 0 ? 'bad-text' : ''}>{percent(ended === 0 ? null : failed / ended)}</span>
                ),
              },
              {
                id: 'p50',
                title: 'p50',
                width: TIME_WIDTH,
                align: 'end',
                isExtra: true,
                cell: ({ p50 }) => duration(p50),
              },
              {
                id: 'p95',
                title: 'p95',
                width: TIME_WIDTH,
                align: 'end',
                isFixed: true,
                cell: ({ p95 }) => duration(p95),
              },
              {
                id: 'workers',
                title: 'Workers',
                width: '80px',
                align: 'end',
                isExtra: true,
                cell: ({ workers }) => count(workers),
              },
            ]}
          />
        )}
      </Loaded>
      <p class="hint">Requests that workers ended, without cancelled ones; p50 and p95 of their times at a worker.</p>
    </Section>
  )
}
