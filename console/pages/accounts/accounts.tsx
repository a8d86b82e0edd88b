/** The accounts of this installation, for its operator. */
import { useRef, useState } from 'preact/hooks'
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { Account } from '../../client/api-types.d.ts'
import { type Resource, useResource } from '../../client/resource.ts'
import { mayManage, mayOperate, who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { count } from '../../format.ts'
import { Ask } from '../../parts/ask.tsx'
import { Ago, Empty, Loaded, PageHead } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, Drawer, Facts, Part, ResourcePage, ShownOnce } from '../../parts/things.tsx'
import { LIMITS, type Limits, limitText, quotaName, readLimits } from './quota.ts'

/** The page of accounts. */
export function Accounts() {
  const [key, setKey] = useState<string | null>(null)
  const accounts = useAll('GET /v2/account/accounts', 'accounts', changeTopic(/account/i), mayOperate())
  if (!mayOperate())
    return (
      <>
        <PageHead title="Accounts" />
        <Empty title="Only keys of the operator with all rights see the accounts" />
      </>
    )
  return (
    <ResourcePage
      title="Accounts"
      what="account"
      purpose="An account has endpoints, secrets and keys of its own that no other account sees."
      of={accounts}
      columns={COLUMNS}
      searchText={({ id, name }) => `${name} ${id}`}
      form={onClose => <NewAccount onClose={onClose} onKey={setKey} onChange={accounts.reload} />}
      detail={account => <Detail of={account} onChange={accounts.reload} onKey={setKey} />}
    >
      {key === null ? null : (
        <ShownOnce title="A key with all rights of the account" text={key} onClose={() => setKey(null)} />
      )}
    </ResourcePage>
  )
}

const COLUMNS: readonly Column<Account>[] = [
  {
    id: 'name',
    title: 'Name',
    cell: ({ id, name }) => (id === who.value?.account.id ? `${name} (yours)` : name),
    sort: ({ name }) => name,
  },
  quotaColumn('endpoints', 'Endpoints', true),
  quotaColumn('workers', 'Workers'),
  quotaColumn('queuedJobs', 'Waiting jobs'),
  quotaColumn('storedMb', 'Kept, MB', true),
]

/** A column of one quota. Rows out of sight are not drawn, so their quotas are not read. */
function quotaColumn(quota: string, title: string, isExtra = false): Column<Account> {
  return { id: quota, title, width: '160px', cell: ({ id }) => <Quota of={id} name={quota} />, isExtra }
}

function Quota({ of, name }: { readonly of: string; readonly name: string }) {
  const quota = useQuotas(of).data?.[name]
  return quota === undefined ? null : <Used quota={quota} />
}

interface Changing {
  readonly onChange: () => void
  readonly onKey: (key: string) => void
}

async function newKey(account: string): Promise<string> {
  return (await api('POST /v2/account/keys', { body: { name: 'from the operator', account } })).key
}

function NewAccount({ onClose, onKey, onChange }: Changing & { readonly onClose: () => void }) {
  // Stored, so that a retry after a lost answer creates the key and not a second account.
  const created = useRef<Account | null>(null)
  return (
    <Ask
      title="New account"
      action="Create the account and its first key"
      asked={[{ name: 'name', label: 'Name' }]}
      act={async ({ name = '' }) => {
        created.current ??= await api('POST /v2/account/accounts', { body: { name: String(name) } })
        onChange()
        onKey(await newKey(created.current.id))
      }}
      onClose={onClose}
      note={
        <p>
          Accounts do not see each other. Other accounts use containers; folders stay yours. From the second account on,
          webhooks go to public addresses only.
        </p>
      }
    />
  )
}

function Detail({ of, onChange, onKey }: Changing & { readonly of: Account }) {
  const { id, name, createdAt, deleteRunningEndpoints } = of
  const limits: Limits = of.limits
  const quotas = useQuotas(id)
  const update = async (body: Parameters<typeof patch>[1]) => {
    await patch(id, body)
    quotas.reload()
    onChange()
  }
  const actions: readonly Action[] = [
    [
      'New key for the account',
      onClose => (
        <Confirm
          title={`Create a key of ${name}?`}
          action="Create the key"
          onClose={onClose}
          onConfirm={async () => onKey(await newKey(id))}
        >
          <p>It has all rights of that account. It is for an owner who lost the first one.</p>
        </Confirm>
      ),
    ],
    [
      'Change the settings',
      onClose => (
        <Ask
          title={`Settings of ${name}`}
          action="Save the settings"
          isChange
          asked={[
            { name: 'name', label: 'Name', value: name },
            {
              name: 'deleteRunningEndpoints',
              label: 'GraphQL may delete endpoints with workers',
              type: 'check',
              value: deleteRunningEndpoints,
            },
          ]}
          act={(_, changed) => update(changed)}
          onClose={onClose}
        />
      ),
    ],
    [
      'Change the limits',
      onClose => (
        <Ask
          title={`Limits of ${name}`}
          action="Save the limits"
          isChange
          asked={(Object.keys(LIMITS) as (keyof Limits)[]).map(limit => ({
            name: `limits.${limit}`,
            label: LIMITS[limit],
            value: limitText(limits[limit]),
            placeholder: 'default of the server',
          }))}
          act={values => update({ limits: readLimits(values) })}
          onClose={onClose}
          note={
            <p class="hint">
              A number, <code>none</code> for no limit, or nothing for the default. A lower limit deletes nothing: it
              only refuses new objects.
            </p>
          }
        />
      ),
    ],
  ]
  return (
    <Drawer
      title={name}
      facts={[
        ['Made', <Ago at={createdAt} suffix=" ago" />],
        ['GraphQL deletes', deleteRunningEndpoints ? 'endpoints with workers too' : 'endpoints without workers'],
        ['Id', <code>{id}</code>],
      ]}
      actions={mayManage('write') ? actions : []}
    >
      <Part title="Usage and limits">
        <Loaded of={quotas}>
          {data => <Facts of={Object.entries(data).map(([quota, use]) => [quotaName(quota), <Used quota={use} />])} />}
        </Loaded>
      </Part>
    </Drawer>
  )
}

function patch(id: string, body: { readonly limits?: Limits; readonly name?: string }): Promise<unknown> {
  return api('PATCH /v2/account/accounts/{id}', { path: { id }, body })
}

/** The used amount, and the limit if there is one. */
interface QuotaUse {
  readonly used: number
  readonly limit: number | null
}

/** Interval of reads: quotas change with each job of another account, and the operator receives no event of it. */
const EVERY_MS = 15_000
/** Share of a limit from which its bar warns. */
const NEARLY = 0.9

/** Reads the quotas of an account. Cells of one row share a read. */
function useQuotas(account: string): Resource<Readonly<Record<string, QuotaUse>>> {
  return useResource(`quotas ${account}`, () => shared(account), { everyMs: EVERY_MS })
}

/** Reads in progress, by account. */
const reading = new Map<string, Promise<Readonly<Record<string, QuotaUse>>>>()

function shared(account: string): Promise<Readonly<Record<string, QuotaUse>>> {
  const pending = reading.get(account)
  if (pending !== undefined) return pending
  const read = api('GET /v2/account/accounts/{id}/quotas', { path: { id: account } })
    .then(({ quotas }) => quotas)
    .finally(() => reading.delete(account))
  reading.set(account, read)
  return read
}

/** A quota as numbers and a bar. */
function Used({ quota: { used, limit } }: { readonly quota: QuotaUse }) {
  if (limit === null) return <>{count(used)}</>
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  return (
    <span class="used" title={`${count(used)} of ${count(limit)}`}>
      {count(used)} <span class="faint">of {count(limit)}</span>
      <span class={`meter${share >= NEARLY ? ' full' : ''}`} aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  )
}
