/**
 * The columns of lists of resources, which fit into 80 characters with names of ordinary length; JSON has everything.
 */
import { sizeText } from '../../core/models/model-problem.ts'
import { ageText, type Column, column, durationText, memberAt, shown, type TableRow } from './table.ts'

/** A column with the age of an instant that the server writes as a date and time. */
function age(title: string, path: string): Column {
  return {
    title,
    text: row => {
      const instant = memberAt(row, path)
      return typeof instant === 'string' ? ageText(Date.parse(instant)) : '-'
    },
  }
}

/** The time left until an instant, or a word for a past one. */
function left(title: string, path: string): Column {
  return {
    title,
    text: row => {
      const instant = memberAt(row, path)
      if (typeof instant !== 'string') return '-'
      const ms = Date.parse(instant)
      return ms <= Date.now() ? 'expired' : `in ${ageText(Date.now(), ms)}`
    },
  }
}

/** The hardware of one worker: `2x ADA_24`, `8 GB of ADA_24`, or `2 vCPU cpu3g`. */
function hardwareText({ gpu, cpu }: TableRow): string {
  const gpus = gpu as { pools?: readonly string[]; count?: number; memoryGb?: number | 'auto' } | null | undefined
  if (gpus?.pools !== undefined) {
    const { memoryGb, count = 1 } = gpus
    const part = memoryGb === undefined ? `${count}x` : memoryGb === 'auto' ? 'learned share of' : `${memoryGb} GB of`
    return `${part} ${gpus.pools.join(',')}`
  }
  const [flavor] = (cpu ?? []) as readonly { id: string; vcpuCount: number }[]
  return flavor === undefined ? '-' : `${flavor.vcpuCount} vCPU ${flavor.id}`
}

/** Columns by the command that lists. */
export const RESOURCE_COLUMNS = {
  endpoints: [
    ...[column('ID', 'id'), column('NAME', 'name')],
    { title: 'TYPE', text: row => (row.type === 'LOAD_BALANCER' ? 'LB' : shown(row.type)) },
    { title: 'WORKERS', text: row => `${memberAt(row, 'workers.min')}-${memberAt(row, 'workers.max')}` },
    { title: 'HARDWARE', text: hardwareText },
    column('IMAGE', 'image'),
  ],
  templates: [column('ID', 'id'), column('NAME', 'name'), column('SERVERLESS', 'serverless'), column('IMAGE', 'image')],
  secrets: [column('ID', 'id'), column('NAME', 'name'), age('AGE', 'createdAt'), column('DESCRIPTION', 'description')],
  keys: [
    ...[column('ID', 'id'), column('NAME', 'name'), column('KEY', 'hint'), column('SCOPE', 'scope.type')],
    {
      title: 'VALID',
      text: row =>
        row.disabled === true ? 'disabled' : row.expiresAt === null ? 'yes' : left('', 'expiresAt').text(row),
    },
    age('USED', 'lastUsedAt'),
  ],
  endpointKeys: [
    ...[column('ID', 'id'), column('ENDPOINT', 'endpoint'), column('KEY', 'hint')],
    { title: 'VALID', text: row => (row.disabled === true ? 'revoked' : 'yes') },
    ...[age('AGE', 'createdAt'), age('USED', 'lastUsedAt')],
  ],
  accounts: [column('ID', 'id'), column('NAME', 'name'), column('DELETES RUNNING', 'deleteRunningEndpoints')],
  volumes: [column('ID', 'id'), column('NAME', 'name'), column('GB', 'size'), column('DATA CENTER', 'dataCenter')],
  'global-volumes': [column('ID', 'id'), column('NAME', 'name'), column('GB', 'size')],
  registries: [column('ID', 'id'), column('NAME', 'name')],
  alerts: [
    ...[column('ID', 'id'), column('NAME', 'name'), column('KIND', 'kind'), column('ADDRESS', 'address')],
    ...[age('SENT', 'sentAt'), column('PROBLEM', 'problem')],
  ],
  openAlerts: [
    ...[column('ENDPOINT', 'endpointName'), age('SINCE', 'since'), column('CAUSE', 'cause'), column('TEXT', 'text')],
  ],
  releases: [
    ...[column('VERSION', 'version'), age('AGE', 'createdAt'), column('WORKERS', 'workerCount')],
    { title: 'CHANGED', text: row => changedFields(row) },
  ],
  jobs: [
    ...[column('ID', 'id'), column('STATUS', 'status')],
    { title: 'AGE', text: row => ageText(row.createdAt) },
    { title: 'WAITED', text: row => durationText(row.delayTime) },
    { title: 'RAN', text: row => (row.startedAt === null ? '-' : durationText(row.executionTime)) },
  ],
  jobsOfAll: [
    ...[column('ID', 'id'), column('ENDPOINT', 'endpointId'), column('STATUS', 'status')],
    { title: 'AGE', text: row => ageText(row.createdAt) },
  ],
  batches: [
    ...[column('ID', 'id'), column('STATUS', 'status')],
    { title: 'AGE', text: row => ageText(row.createdAt) },
    ...[column('TOTAL', 'requestTotal'), column('DONE', 'requestCompleted'), column('FAILED', 'requestFailed')],
  ],
  batchesOfAll: [
    ...[column('ID', 'id'), column('ENDPOINT', 'endpointId'), column('STATUS', 'status')],
    { title: 'AGE', text: row => ageText(row.createdAt) },
    { title: 'DONE', text: row => `${row.requestCompleted}/${row.requestTotal}` },
  ],
  deliveries: [
    ...[column('ID', 'id'), column('STATE', 'state'), column('JOB', 'jobStatus'), age('AGE', 'createdAt')],
    { title: 'TRY', text: row => String((row.tries as readonly unknown[]).length) },
    { title: 'LAST', text: row => lastTry(row) },
  ],
  models: [
    ...[column('MODEL', 'name'), { title: 'COMMIT', text: (row: TableRow) => shown(row.commit).slice(0, 8) }],
    { title: 'REFS', text: row => (row.refs as readonly string[]).join(',') || '-' },
    { title: 'SIZE', text: row => sizeText(Number(row.bytes)) },
    ...[column('WORKERS', 'workers'), age('USED', 'usedAt')],
  ],
  gpus: [
    ...[column('ID', 'id'), column('NAME', 'name'), column('POOL', 'pool'), column('GB', 'memory')],
    column('HERE', 'maxCount.secure'),
  ],
  cpus: [
    ...[column('ID', 'id'), column('NAME', 'name'), column('GB PER VCPU', 'ramGbPerVcpu')],
    { title: 'VCPUS', text: row => `${memberAt(row, 'vcpu.min')}-${memberAt(row, 'vcpu.max')}` },
  ],
  readyWorkers: [
    column('NAME', 'name'),
    { title: 'GPU', text: row => (row.gpuMemoryGb === 0 ? '-' : `${row.gpuMemoryGb} GB`) },
    { title: 'DISK', text: row => `${row.diskGb} GB` },
    column('WHAT', 'about'),
  ],
  datacenters: [column('ID', 'id'), column('REGION', 'region')],
} as const satisfies Readonly<Record<string, readonly Column[]>>

function changedFields({ diff }: TableRow): string {
  return ((diff ?? []) as readonly { field: string }[]).map(({ field }) => field).join(', ') || '-'
}

function lastTry({ tries }: TableRow): string {
  const last = (tries as readonly { status?: number; error?: string }[]).at(-1)
  return last === undefined ? '-' : String(last.status ?? last.error)
}
