/** The quotas of the account. */
import { api } from '../../client/api.ts'
import { useResource } from '../../client/resource.ts'
import { anyEndpointTopic } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { Loaded, Section } from '../../parts/basic.tsx'
import { Meter } from '../../parts/spark.tsx'

/** Titles of limited objects, in the order of the page. */
const TITLES: Readonly<Record<string, string>> = {
  workers: 'Workers',
  gpus: 'GPUs',
  workersMin: 'Minimum workers',
  queuedJobs: 'Waiting jobs',
  queuedMb: 'Waiting inputs',
  storedMb: 'Kept data',
  secretsMb: 'Stored secrets',
  buildsMb: 'Builds of apps',
  logsMb: 'Logs of workers',
  endpoints: 'Endpoints',
  templates: 'Templates',
  secrets: 'Secrets',
  registries: 'Registries',
  volumes: 'Volumes',
  apps: 'Apps',
  environments: 'Environments of apps',
  builds: 'Builds of apps',
}

/** The quotas of the account of the session. */
export function Quotas() {
  const quotas = useResource(
    'quotas own',
    signal => api('GET /v2/account/accounts/{id}/quotas', { path: { id: 'own' }, signal }),
    { on: event => anyEndpointTopic(event) || event.type === 'change.made', everyMs: 15_000 },
  )
  return (
    <Section title="Limits of the account">
      <Loaded of={quotas}>
        {data => {
          const titledNames = Object.keys(TITLES).filter(name => name in data.quotas)
          const untitledNames = Object.keys(data.quotas).filter(name => !(name in TITLES))
          return (
            <ul class="quotas">
              {[...titledNames, ...untitledNames].map(name => (
                <Quota
                  key={name}
                  title={TITLES[name] ?? name}
                  unit={name.endsWith('Mb') ? ' MB' : ''}
                  {...data.quotas[name]!}
                />
              ))}
            </ul>
          )
        }}
      </Loaded>
    </Section>
  )
}

function Quota({
  title,
  unit,
  used,
  limit,
}: {
  readonly title: string
  readonly unit: string
  readonly used: number
  readonly limit: number | null
}) {
  // A limit of zero counts as used up.
  const share = limit === null ? null : limit === 0 ? 1 : used / limit
  return (
    <li>
      <span>{title}</span>
      <span>
        <b>{count(used)}</b>
        {unit} <span class="faint">{limit === null ? 'no limit' : `of ${count(limit)}${unit}`}</span>
      </span>
      {share === null ? null : <Meter share={share} label={title} />}
    </li>
  )
}
