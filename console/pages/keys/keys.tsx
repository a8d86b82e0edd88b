/** Keys: of the account, of its endpoints, and public SSH keys. */
import { useState } from 'preact/hooks'
import { useAll } from '../../client/all.ts'
import { api } from '../../client/api.ts'
import type { ApiKey } from '../../client/api-types.d.ts'
import { mayManage, noteSessionEnd, who } from '../../client/session.ts'
import { changeTopic } from '../../client/topics.ts'
import { useEndpoints } from '../../client/uses.ts'
import { dateTime, duration, instant } from '../../format.ts'
import { Ago, Button, State } from '../../parts/basic.tsx'
import { Confirm } from '../../parts/dialog.tsx'
import type { Column } from '../../parts/table.tsx'
import { type Action, closeRow, Drawer, ResourcePage, ShownOnce } from '../../parts/things.tsx'
import { now } from '../../server-clock.ts'
import { EndpointKeys } from './endpoint-keys.tsx'
import { KeyForm } from './key-form.tsx'
import { LastUsed } from './last-used.tsx'
import { describeLimits } from './limits.ts'
import { RotateKey } from './rotate-key.tsx'
import { type MadeKey, secretsBeside } from './rotation.ts'
import { describeScope } from './scope.ts'
import { SshKeys } from './ssh-keys.tsx'

type EndpointName = (endpoint: string) => string

/** The page of keys. */
export function Keys() {
  const [newKey, setNewKey] = useState<MadeKey | null>(null)
  const keys = useAll('GET /v2/account/keys', 'keys', changeTopic(/key/i))
  const endpoints = useEndpoints().data
  const endpointName = (id: string) => endpoints?.find(one => one.id === id)?.name ?? id
  return (
    <ResourcePage
      title="Keys"
      what="key"
      purpose="A key lets a person or a program use this account, with all rights or with some."
      of={keys}
      columns={keyColumns(endpointName)}
      searchText={({ name, hint, scope }) => `${name} ${hint} ${describeScope(scope, endpointName)}`}
      form={onClose => (
        <KeyForm
          onClose={onClose}
          onDone={key => {
            setNewKey(key)
            keys.reload()
          }}
        />
      )}
      detail={key => <Detail of={key} endpointName={endpointName} onChange={keys.reload} onMade={setNewKey} />}
    >
      <EndpointKeys endpointName={endpointName} onMade={key => setNewKey({ key, s3: null })} />
      <SshKeys />
      {newKey === null ? null : (
        <ShownOnce
          title="The new key"
          text={newKey.key}
          beside={secretsBeside(newKey)}
          onClose={() => setNewKey(null)}
        />
      )}
    </ResourcePage>
  )
}

function keyColumns(endpointName: EndpointName): readonly Column<ApiKey>[] {
  return [
    {
      id: 'name',
      title: 'Name',
      cell: ({ id, name }) => (id === who.value?.keyId ? `${name} (this session)` : name),
      sort: ({ name }) => name,
    },
    { id: 'hint', title: 'Begins with', width: '110px', cell: ({ hint }) => <code>{hint}</code>, isExtra: true },
    {
      id: 'scope',
      title: 'May do',
      width: 'minmax(0, 1.5fr)',
      cell: ({ scope }) => describeScope(scope, endpointName),
    },
    { id: 'used', title: 'Last used', width: '130px', cell: key => <LastUsed of={key} />, isExtra: true },
    { id: 'ends', title: 'Expires', width: '130px', cell: key => <Expiration of={key} />, isExtra: true },
    { id: 'state', title: 'State', width: '110px', cell: key => <KeyState of={key} /> },
  ]
}

function Expiration({ of: { expiresAt } }: { readonly of: ApiKey }) {
  if (expiresAt === null) return <span class="faint">never</span>
  const leftMs = instant(expiresAt) - now.value
  return <span title={dateTime(expiresAt)}>{leftMs > 0 ? `in ${duration(leftMs)}` : dateTime(expiresAt)}</span>
}

/** Actions on a key that works. */
const OF_WORKING = new Set(['Disable', 'Rotate'])

function isOver({ expiresAt }: ApiKey): boolean {
  return expiresAt !== null && instant(expiresAt) <= now.value
}

function KeyState({ of }: { readonly of: ApiKey }) {
  const { disabled } = of
  if (disabled || isOver(of)) return <State tone="off">{disabled ? 'disabled' : 'ended'}</State>
  return <State tone="good">works</State>
}

function Detail({
  of,
  endpointName,
  onChange,
  onMade,
}: {
  readonly of: ApiKey
  readonly endpointName: EndpointName
  readonly onChange: () => void
  /** Receives a new key, which is shown once. */
  readonly onMade: (key: MadeKey) => void
}) {
  const { id, name, hint, scope, disabled, exempt, limits, accounting, createdAt } = of
  const isOwn = id === who.value?.keyId
  const works = !disabled && !isOver(of)
  const path = { id }
  const setDisabled = async (isDisabled: boolean) => {
    await api('PATCH /v2/account/keys/{id}', { path, body: { disabled: isDisabled } })
    if (isOwn) noteSessionEnd()
    onChange()
  }
  const ownKeyNotice = isOwn ? (
    <p class="notice wait">You are signed in with this key: you are signed out at once.</p>
  ) : null
  const actions: readonly Action[] = [
    [
      'Revoke',
      onClose => (
        <Confirm
          title={`Revoke the key ${name}?`}
          action="Revoke the key"
          onClose={onClose}
          onConfirm={async () => {
            await api('DELETE /v2/account/keys/{id}', { path })
            closeRow()
            if (isOwn) noteSessionEnd()
            onChange()
          }}
        >
          <p>
            It never works again. Calls with it are refused, and calls that it holds open end within a second. Its jobs
            go on.
          </p>
          <p>
            Last used: <LastUsed of={of} />
          </p>
          {ownKeyNotice}
        </Confirm>
      ),
      'danger',
    ],
    [
      'Disable',
      onClose => (
        <Confirm
          title={`Disable the key ${name}?`}
          action="Disable the key"
          onClose={onClose}
          onConfirm={() => setDisabled(true)}
        >
          <p>Calls with it are refused until it is enabled again, and calls that it holds open end within a second.</p>
          {ownKeyNotice}
        </Confirm>
      ),
    ],
    [
      'Rotate',
      onClose => (
        <RotateKey
          of={of}
          onClose={onClose}
          onDone={key => {
            closeRow()
            onMade(key)
            onChange()
          }}
        />
      ),
    ],
    ['Change', onClose => <KeyForm of={of} onClose={onClose} onDone={onChange} />],
  ]
  return (
    <Drawer
      title={name}
      facts={[
        ['May do', describeScope(scope, endpointName)],
        ['Begins with', <code>{hint}</code>],
        ['State', <KeyState of={of} />],
        ['Ends', <Expiration of={of} />],
        ['Made', <Ago at={createdAt} suffix=" ago" />],
        ['Last used', <LastUsed of={of} />],
        ['Limits on models', describeLimits(limits)],
        ['Tokens of streams', accounting ? 'reported' : 'reported where a program asks for them'],
        ['Limits on requests', exempt ? 'not counted' : 'counted'],
        ['Id', <code>{id}</code>],
      ]}
      actions={mayManage('write') ? actions.filter(([title]) => works || !OF_WORKING.has(title)) : []}
    >
      {isOwn ? <p class="notice drawer-part">You are signed in with this key.</p> : null}
      {disabled && mayManage('write') ? (
        <p class="drawer-part">
          <Button onPress={() => setDisabled(false)}>Enable</Button>
        </p>
      ) : null}
    </Drawer>
  )
}
