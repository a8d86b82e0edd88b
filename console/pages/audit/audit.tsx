/** The audit log: who changed what, and which secrets were used. For the operator. */
import { useState } from 'preact/hooks'
import { useAll } from '../../client/all.ts'
import { api, errorSentence } from '../../client/api.ts'
import type { AuditEntry, AuditPage } from '../../client/api-types.d.ts'
import { mayOperate } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { clockTime, plural } from '../../format.ts'
import { announce } from '../../parts/announce.tsx'
import { Button, Empty, Loaded, PageHead, State, type Tone } from '../../parts/basic.tsx'
import { download } from '../../parts/csv.ts'
import { useGrowingList } from '../../parts/more.ts'
import { QuerySelect, QueryText } from '../../parts/query-fields.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { Drawer, Part } from '../../parts/things.tsx'
import { query, setQuery } from '../../router.ts'
import { serverNow } from '../../server-clock.ts'
import { type Change, changedValues, SURFACES, valueText } from './audit-words.ts'

const PAGE = 100
/** Limits of a file: entries of one call, and calls. */
const FILE_PAGE = 1_000
const FILE_PAGES = 10
const FILTERS = ['account', 'key', 'operation', 'object', 'surface'] as const
/** Time spans up to now, in hours. */
const SPANS = [
  ['1', 'Last hour'],
  ['24', 'Last 24 hours'],
  ['168', 'Last 7 days'],
  ['720', 'Last 30 days'],
] as const
const HOUR_MS = 3_600_000

const TONES: Readonly<Record<AuditEntry['outcome'], Tone>> = {
  begun: 'busy',
  done: 'good',
  refused: 'off',
  failed: 'bad',
  unknown: 'wait',
}

/** The page of the audit log. */
export function Audit() {
  if (mayOperate()) return <Log />
  return (
    <>
      <PageHead title="Audit" />
      <Empty title="The audit log is for the operator">It needs a key of the operator's account with all rights.</Empty>
    </>
  )
}

function Log() {
  const [opened, setOpened] = useState<AuditEntry | null>(null)
  const [isSaving, setSaving] = useState(false)
  const accounts = useAll('GET /v2/account/accounts', 'accounts', changeTopic(/account/i)).data ?? []
  const keys = useAll('GET /v2/account/keys', 'keys', changeTopic(/key/i)).data ?? []
  const names: Names = {
    account: id => accounts.find(one => one.id === id)?.name ?? id,
    key: id => keys.find(one => one.id === id)?.name ?? id,
  }
  const filter = Object.fromEntries(FILTERS.map(name => [name, query.value.get(name) ?? undefined]))
  const span = query.value.get('span')
  const since = () => {
    const hours = SPANS.some(([one]) => one === span) ? Number(span) : null
    return hours === null ? {} : { since: new Date(serverNow() - hours * HOUR_MS).toISOString() }
  }
  const read = async (bounds: { since?: string; limit: number }, cursor: string | null, signal?: AbortSignal) => {
    const surface = filter.surface as AuditEntry['surface'] | undefined
    const page = { ...bounds, ...(cursor === null ? {} : { cursor }) }
    return api('GET /v2/audit', { query: { ...filter, surface, ...page }, ...(signal && { signal }) })
  }
  const entries = useGrowingList<AuditEntry>(
    `audit ${span} ${JSON.stringify(filter)}`,
    async (cursor, signal) => {
      const { entries: rows, pagination } = await read({ ...since(), limit: PAGE }, cursor, signal)
      return { rows, nextCursor: pagination.nextCursor }
    },
    ({ sequence }) => String(sequence),
    changeTopic(/./),
  )
  const save = async () => {
    setSaving(true)
    const bounds = { ...since(), limit: FILE_PAGE }
    await saveEntries(cursor => read(bounds, cursor)).catch((error: unknown) =>
      announce(`Not saved: ${errorSentence(error)}`, 'problem'),
    )
    setSaving(false)
  }
  const isFiltered = span !== null || FILTERS.some(name => filter[name] !== undefined)
  return (
    <>
      <PageHead title="Audit">
        <Button onPress={entries.reload}>Read again</Button>
        <Button onPress={save} disabled={isSaving}>
          {isSaving ? 'Reading…' : 'Download'}
        </Button>
        <Button onPress={check}>Check the log</Button>
      </PageHead>
      <div class="tools">
        <QuerySelect
          name="account"
          label="Account"
          all="All accounts"
          options={accounts.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`])}
        />
        <QueryText name="key" label="Id of a key" />
        <QueryText name="operation" label="Operation" />
        <QueryText name="object" label="Id of an object" />
        <QuerySelect name="surface" label="Surface" all="All surfaces" options={SURFACES} />
        <QuerySelect name="span" label="Time" all="All times" options={SPANS} />
        {isFiltered ? (
          <Button
            kind="quiet"
            onPress={() => setQuery(Object.fromEntries(['span', ...FILTERS].map(name => [name, null])))}
          >
            Clear filters
          </Button>
        ) : null}
      </div>
      <Loaded of={entries}>
        {rows => (
          <Table
            label="Audit log"
            rows={rows}
            columns={entryColumns(names)}
            rowKey={({ sequence }) => String(sequence)}
            onOpen={setOpened}
            onEnd={entries.more}
            empty={
              isFiltered ? (
                <Empty title="No entry matches">The filters compare whole names and ids.</Empty>
              ) : (
                <Empty title="The log is empty" />
              )
            }
          />
        )}
      </Loaded>
      {entries.hasMore ? (
        <div class="tools below">
          <Button onPress={entries.more}>{entries.isReading ? 'Reading…' : 'Older entries'}</Button>
        </div>
      ) : null}
      {opened === null ? null : <Detail of={opened} names={names} onClose={() => setOpened(null)} />}
    </>
  )
}

/** Saves the entries as JSON lines, the newest first, up to a limit. */
async function saveEntries(read: (cursor: string | null) => Promise<AuditPage>): Promise<void> {
  const lines: string[] = []
  let cursor: string | null = null
  for (let page = 0; page < FILE_PAGES && (page === 0 || cursor !== null); page += 1) {
    const { entries, pagination }: AuditPage = await read(cursor)
    lines.push(...entries.map(entry => `${JSON.stringify(entry)}\n`))
    cursor = pagination.nextCursor
  }
  download(`audit-${new Date(serverNow()).toISOString().slice(0, 10)}.jsonl`, lines.join(''), 'application/x-ndjson')
  const more = cursor === null ? '' : ': the newest. runyard audit --export writes the whole log'
  announce(`Saved ${plural(lines.length, 'entry', 'entries')}${more}`)
}

/** Says whether each entry is bound to the one before. */
async function check(): Promise<void> {
  const { intact, head, broken } = await api('GET /v2/audit/verification', {})
  if (intact) announce(`The log is whole up to entry ${head.sequence}`)
  else announce(`Entry ${broken?.sequence} does not fit: ${broken?.problem}`, 'problem')
}

/** Names of accounts and keys by their ids; the id itself where none is known. */
interface Names {
  readonly account: (id: string) => string
  readonly key: (id: string) => string
}

function entryColumns(names: Names): readonly Column<AuditEntry>[] {
  return [
    { id: 'at', title: 'Time', width: '160px', cell: ({ at }) => <time dateTime={at}>{clockTime(at)}</time> },
    { id: 'actor', title: 'Who', cell: entry => actor(entry, names), isExtra: true },
    { id: 'operation', title: 'Operation', cell: ({ operation }) => <code>{operation}</code> },
    {
      id: 'object',
      title: 'Object',
      cell: ({ object }) => (object === null ? <span class="faint">–</span> : `${object.kind} ${object.id}`),
    },
    {
      id: 'changes',
      title: 'Changed',
      cell: ({ changes }) => (changes as readonly Change[]).map(({ field }) => field).join(', '),
      isExtra: true,
    },
    { id: 'outcome', title: 'Outcome', width: '110px', cell: entry => <Outcome of={entry} />, isExtra: true },
  ]
}

function actor({ account, keyId, surface }: AuditEntry, names: Names): string {
  if (account === null && keyId === null) return surface === 'server' ? 'the server' : 'a stranger'
  if (account === null) return names.key(keyId!)
  return keyId === null ? names.account(account) : `${names.account(account)}, key ${names.key(keyId)}`
}

function Outcome({ of: { outcome } }: { readonly of: AuditEntry }) {
  return <State tone={TONES[outcome]}>{outcome}</State>
}

function Detail({
  of,
  names,
  onClose,
}: {
  readonly of: AuditEntry
  readonly names: Names
  readonly onClose: () => void
}) {
  const { sequence, at, keyId, session, address, surface, operation, object, changes, detail } = of
  const { problem, requestId, begun, hash } = of
  const details = Object.entries(detail)
  return (
    <Drawer
      title={`Entry ${sequence}: ${operation}`}
      facts={[
        ['Time', `${clockTime(at)} (${at})`],
        ['Who', `${actor(of, names)}${session ? ', signed in to the console' : ''}`],
        ['Key', keyId === null ? '–' : <code>{keyId}</code>],
        ['From', address ?? '–'],
        ['Surface', surface],
        ['Object', object === null ? '–' : `${object.kind} ${object.id}`],
        ['Outcome', <Outcome of={of} />],
        ['Problem', problem ?? '–'],
        ['Request', requestId ?? '–'],
        ['Ends entry', begun === null ? '–' : String(begun)],
        ['Hash', <code>{hash}</code>],
      ]}
      actions={[]}
      onClose={onClose}
    >
      {changes.length === 0 ? null : (
        <Part title="Changes">
          <ul>
            {(changes as readonly Change[]).map(change => (
              <li key={change.field}>
                <code>{change.field}</code>: {changedValues(change)}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {details.length === 0 ? null : (
        <Part title="Details">
          <ul>
            {details.map(([name, value]) => (
              <li key={name}>
                {name}: {valueText(value)}
              </li>
            ))}
          </ul>
        </Part>
      )}
    </Drawer>
  )
}
