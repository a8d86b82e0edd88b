/** Apps that RunPod's SDK deployed: environments, the build that each endpoint runs, and builds. */
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { App, AppDetail, AppEndpoint, AppEnvironmentWithEndpoints } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage } from '../../client/session.ts'
import { appTopic } from '../../client/topics.ts'
import { bytes, plural } from '../../format.ts'
import { Ago, Loaded } from '../../parts/basic.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, deletion, Part, ResourcePage } from '../../parts/things.tsx'
import { removeApp } from './removal.ts'

const COLUMNS: readonly Column<App>[] = [
  { id: 'name', title: 'Name', cell: ({ name }) => name, sort: ({ name }) => name },
  {
    id: 'environments',
    title: 'Environments',
    cell: ({ environments }) => environments.map(({ name }) => name).join(', ') || '–',
  },
  {
    id: 'endpoints',
    title: 'Endpoints',
    width: '110px',
    cell: ({ endpointCount }) => endpointCount,
    sort: ({ endpointCount }) => endpointCount,
  },
  { id: 'age', title: 'Created', width: '120px', cell: ({ createdAt }) => <Ago at={createdAt} />, isExtra: true },
]

/** The page of apps. */
export function Apps() {
  const apps = useAll('GET /v2/account/apps', 'apps', appTopic)
  return (
    <ResourcePage
      title="Apps"
      what="app"
      purpose="An app is a set of Python functions that “rp flash deploy” of RunPod's SDK puts on this server."
      of={apps}
      columns={COLUMNS}
      searchText={({ id, name }) => `${name} ${id}`}
      detail={app => <Detail of={app} onChange={apps.reload} />}
    />
  )
}

function Detail({ of: { id, name, createdAt }, onChange }: { readonly of: App; readonly onChange: () => void }) {
  const content = useResource(`app ${id}`, signal => api('GET /v2/account/apps/{id}', { path: { id }, signal }), {
    on: event => appTopic(event) || event.type.startsWith('worker.'),
  })
  return (
    <Drawer
      title={name}
      facts={[
        ['Created', <Ago at={createdAt} />],
        ['Id', <code>{id}</code>],
      ]}
      actions={content.data !== null && mayManage('write') ? actionsOn(content.data, onChange) : []}
    >
      <Loaded of={content}>
        {app => (
          <>
            {app.environments.map(environment => (
              <Environment key={environment.id} of={environment} />
            ))}
            <Builds of={app} />
          </>
        )}
      </Loaded>
    </Drawer>
  )
}

function Environment({ of: { name, endpoints } }: { readonly of: AppEnvironmentWithEndpoints }) {
  return (
    <Part title={`Environment ${name}`}>
      {endpoints.length === 0 ? (
        <p>It has no endpoints.</p>
      ) : (
        <ul>
          {endpoints.map(endpoint => (
            <li key={endpoint.id}>
              <a href={`/endpoints/${endpoint.id}`}>{endpoint.name}</a>: {runs(endpoint)}
            </li>
          ))}
        </ul>
      )}
    </Part>
  )
}

/** The build of the newest release, and the workers by the build that they run. */
function runs({ buildId, running }: AppEndpoint): string {
  const current = running.find(run => run.buildId === buildId)?.workers ?? 0
  const older = running
    .filter(run => run.buildId !== buildId)
    .map(run => `, ${plural(run.workers, 'worker')} of ${run.buildId ?? 'no build'}`)
  return `${buildId === null ? 'no build' : `build ${buildId}`}, ${plural(current, 'worker')}${older.join('')}`
}

function Builds({ of: { builds, environments } }: { readonly of: AppDetail }) {
  const activeIn = (build: string) => environments.filter(one => one.activeBuildId === build).map(({ name }) => name)
  return (
    <Part title="Builds">
      {builds.length === 0 ? (
        <p>There are none.</p>
      ) : (
        <ul>
          {builds.map(({ id, size, unpackedSize, createdAt }) => (
            <li key={id}>
              <code>{id}</code> <Ago at={createdAt} />, {bytes(size)}, {bytes(unpackedSize)} unpacked
              {activeIn(id).length === 0 ? '' : `, active in ${activeIn(id).join(', ')}`}
            </li>
          ))}
        </ul>
      )}
    </Part>
  )
}

function actionsOn(app: AppDetail, onChange: () => void): readonly Action[] {
  const removal = (environment: AppEnvironmentWithEndpoints | null) => {
    const { name, endpointCount } =
      environment === null ? app : { name: environment.name, endpointCount: environment.endpoints.length }
    return deletion({
      what: environment === null ? 'app' : 'environment',
      name,
      typed: name,
      onConfirm: async () => {
        await removeApp(app, environment?.id ?? null)
        onChange()
      },
      children: (
        <p>
          {plural(endpointCount, 'endpoint')} and all their jobs are deleted with it
          {environment === null ? `, and ${plural(app.builds.length, 'build')}` : '; the builds of the app stay'}.
        </p>
      ),
    })
  }
  const [, ofApp, kind] = removal(null)
  const single = app.environments.map((environment): Action => {
    const [, dialog, danger] = removal(environment)
    return [`Delete ${environment.name}`, dialog, danger]
  })
  return [['Delete the app', ofApp, kind], ...(single.length > 1 ? single : [])]
}
