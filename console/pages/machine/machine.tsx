/** The machine: its hardware, the users of it, the queue for it, and its problems. For the operator. */
import { api } from '../../client/api.ts'
import type { Diagnosis, Machine as MachineBody, MachineGpu } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayOperate, who } from '../../client/session.ts'
import { anyEndpointTopic } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Ago, Button, Empty, Loaded, PageHead, Section, State } from '../../parts/basic.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { phaseText } from '../endpoint/workers/worker-text.ts'
import { type Measure, machineMeasures, shownFindings } from './machine-text.ts'

/** The page. */
export function Machine() {
  const machine = useResource(mayOperate() ? 'machine' : null, signal => api('GET /v2/machine', { signal }), {
    on: anyEndpointTopic,
    everyMs: 5_000,
  })
  if (!mayOperate())
    return (
      <>
        <PageHead title="Machine" />
        <Empty title="The machine is for the operator">Sign in with a key of the operator's account to see it.</Empty>
      </>
    )
  return (
    <>
      <PageHead title="Machine" />
      <Loaded of={machine}>
        {data => (
          <>
            <Section title="Used now">
              <div class="measures">
                {machineMeasures(data).map(measure => (
                  <MeasureView key={measure.name} measure={measure} />
                ))}
              </div>
            </Section>
            <Gpus machine={data} />
            <Waiting machine={data} />
            <FindingsSection />
          </>
        )}
      </Loaded>
    </>
  )
}

function MeasureView({ measure: { name, used, total, text, note } }: { readonly measure: Measure }) {
  return (
    <div class="measure">
      <span class="faint">{name}</span>
      <b>{text}</b>
      {used === null || total === null ? null : (
        <Meter name={name} share={total === 0 ? 0 : used / total} text={text} />
      )}
      <span class="hint">{note}</span>
    </div>
  )
}

/** Share from which a meter warns that little is left. */
const FULL = 0.9

function Meter({ name, share, text }: { readonly name: string; readonly share: number; readonly text: string }) {
  const part = Math.min(1, Math.max(0, share))
  return (
    <span
      class={`meter${part >= FULL ? ' full' : ''}`}
      role="meter"
      aria-label={name}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(part * 100)}
      aria-valuetext={text}
    >
      <span style={{ width: `${part * 100}%` }} />
    </span>
  )
}

function Gpus({ machine: { gpus, gpuProblem, suspending } }: { readonly machine: MachineBody }) {
  return (
    <Section title={`GPUs (${gpus.length})`}>
      {gpuProblem === null ? null : <p class="notice wait">{gpuProblem}</p>}
      {suspending?.lack == null ? null : (
        <p class="faint">Idle workers keep their GPU memory while they are frozen: {suspending.lack}.</p>
      )}
      {gpus.length === 0 ? (
        <p>
          This machine has no GPU. Workers of GPU endpoints run on the CPU, unless the server was started with{' '}
          <code>--require-gpu</code>: then they wait for a GPU.
        </p>
      ) : (
        <ul class="gpus">
          {gpus.map(gpu => (
            <Gpu key={gpu.id} gpu={gpu} />
          ))}
        </ul>
      )}
    </Section>
  )
}

const GPU_STATES = {
  FREE: <State tone="off">free</State>,
  IN_USE: <State tone="busy">in use</State>,
  PROBLEM: <State tone="bad">problem</State>,
} as const

function Gpu({ gpu }: { readonly gpu: MachineGpu }) {
  const { index, name, type, pool, memoryMb, busyPercent, memoryUsedPercent, problem, holders, memory, mig } = gpu
  return (
    <li class="gpu">
      <div>
        <b>
          {index}: {name}
        </b>{' '}
        {GPU_STATES[gpu.state]}
        <div class="faint">
          {[`${count(memoryMb)} MB`, type === name ? '' : type, pool, mig === null ? '' : `part ${mig}`]
            .filter(part => part !== '')
            .join(' · ')}
        </div>
        {problem === null ? null : <div class="bad-text">{problem}</div>}
      </div>
      <div class="gpu-use">
        <span>Busy</span>
        <Percent name={`GPU ${index} busy`} percent={busyPercent} />
        <span>Memory</span>
        <Percent name={`GPU ${index} memory`} percent={memoryUsedPercent} />
      </div>
      <ul class="holders">
        {holders.length === 0 ? <li class="faint">Free.</li> : null}
        {holders.map(holder => (
          <li key={holder.workerId}>
            <EndpointLink endpoint={holder} />{' '}
            {isOwn(holder.account) ? (
              <a
                class="mono"
                href={`/endpoints/${encodeURIComponent(holder.endpointId)}/workers?worker=${encodeURIComponent(holder.workerId)}`}
              >
                {holder.workerId}
              </a>
            ) : (
              <code>{holder.workerId}</code>
            )}{' '}
            <State tone={holder.asleep || holder.phase === 'frozen' ? 'frozen' : 'busy'}>
              {holder.asleep
                ? `${holder.suspended ? 'suspended' : 'asleep'}, takes it again to wake`
                : phaseText(holder.phase)}
            </State>{' '}
            <span class="faint">
              for <Ago at={holder.sinceMs} />, account {holder.account}
              {holderMemory(holder)}
            </span>
          </li>
        ))}
        {memory === null || memory.foreignMb === 0 ? null : (
          <li>
            Other programs: {gigabytes(memory.foreignMb)}{' '}
            <span class="faint">{memory.programs.map(programText).join(', ')}</span>
          </li>
        )}
        {memory === null ? null : <li class="faint">{gigabytes(memory.freeMb)} not in use.</li>}
      </ul>
    </li>
  )
}

function holderMemory({ shareMb, usedMb, beyondMb }: MachineGpu['holders'][number]): string {
  const share = shareMb === null ? '' : `, ${gigabytes(shareMb)} of the card`
  const beyond = beyondMb > 0 ? ', more than its share' : ''
  return usedMb === null ? share : `${share}, uses ${gigabytes(usedMb)}${beyond}`
}

function programText({
  pid,
  name,
  memoryMb,
}: {
  readonly pid: number
  readonly name: string | null
  readonly memoryMb: number
}) {
  return `pid ${pid}${name === null ? '' : ` (${name})`} ${gigabytes(memoryMb)}`
}

function gigabytes(mb: number): string {
  return `${Math.round(mb / 102.4) / 10} GB`
}

function Percent({ name, percent }: { readonly name: string; readonly percent: number | null }) {
  if (percent === null) return <span class="faint">not known</span>
  const text = `${Math.round(percent)}%`
  return (
    <span>
      <Meter name={name} share={percent / 100} text={text} /> {text}
    </span>
  )
}

function EndpointLink({
  endpoint: { endpointId: id, endpointName: name, account },
}: {
  readonly endpoint: { readonly endpointId: string; readonly endpointName: string | null; readonly account: string }
}) {
  if (name === null) return <span class="faint">{id} (deleted)</span>
  if (!isOwn(account)) return <span>{name}</span>
  return <a href={`/endpoints/${encodeURIComponent(id)}`}>{name}</a>
}

/** True for the account of the operator: pages of other accounts are closed to the operator too. */
function isOwn(account: string): boolean {
  return account === who.value?.account.id
}

type WaitingRow = MachineBody['waiting'][number]

const WAITING_COLUMNS: readonly Column<WaitingRow>[] = [
  {
    id: 'endpoint',
    title: 'Endpoint',
    sort: ({ endpointName, endpointId }) => endpointName ?? endpointId,
    cell: waiting => <EndpointLink endpoint={waiting} />,
  },
  { id: 'account', title: 'Account', width: '110px', isExtra: true, cell: ({ account }) => account },
  {
    id: 'workers',
    title: 'Workers',
    width: '90px',
    isExtra: true,
    sort: ({ workers }) => workers,
    cell: ({ workers }) => count(workers),
  },
  { id: 'resource', title: 'Waits for', width: '120px', cell: ({ resource }) => resource },
  {
    id: 'since',
    title: 'For',
    width: '100px',
    sort: ({ sinceMs }) => sinceMs,
    cell: ({ sinceMs }) => <Ago at={sinceMs} />,
  },
  {
    id: 'reason',
    title: 'Why',
    width: 'minmax(140px, 2.4fr)',
    isExtra: true,
    cell: ({ reason }) => <span title={reason}>{reason}</span>,
  },
]

function Waiting({ machine: { waiting } }: { readonly machine: MachineBody }) {
  return (
    <Section title="Workers that wait for a place">
      {waiting.length === 0 ? (
        <p class="faint">No worker waits for a place.</p>
      ) : (
        <Table
          label="Workers that wait"
          height="content"
          rows={waiting}
          columns={WAITING_COLUMNS}
          rowKey={({ endpointId, resource, reason }) => `${endpointId} ${resource} ${reason}`}
          empty={null}
        />
      )}
    </Section>
  )
}

function FindingsSection() {
  const diagnosis = useResource('machine diagnosis', signal => api('GET /v2/machine/diagnosis', { signal }))
  const check = async () => {
    // The server caches its findings, so the next read takes no time.
    await api('GET /v2/machine/diagnosis', {})
    diagnosis.reload()
    announce('Checked the machine')
  }
  return (
    <Section title="Findings of runyard doctor" actions={<Button onPress={check}>Check again</Button>}>
      <Loaded of={diagnosis}>{data => <Findings diagnosis={data} />}</Loaded>
    </Section>
  )
}

function Findings({ diagnosis: { at, findings } }: { readonly diagnosis: Diagnosis }) {
  return (
    <>
      <p class="hint">
        Checked <Ago at={at} suffix=" ago" />; a check is cached for 30 s.
      </p>
      <ul class="findings">
        {shownFindings(findings).map(({ check, tone, word, message, action }) => (
          <li key={check + message}>
            <State tone={tone}>{word}</State>
            <b>{check}</b>
            <span>
              {message}
              {action === null ? null : (
                <span class="faint">
                  <br />
                  To do: {action}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  )
}
