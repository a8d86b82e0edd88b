/** The page that asks before a command line gets a key: `rp login` opens it. */
import { useState } from 'preact/hooks'
import { api } from '../../client/api.ts'
import type { Login } from '../../client/api-types.d.ts'
import { useResource } from '../../client/resource.ts'
import { mayManage, who } from '../../client/session.ts'
import { useEndpoints } from '../../client/uses.ts'
import { Ago, Button, PageHead } from '../../parts/basic.tsx'
import { FormProblems, type Problems, problemsFromError, TextField } from '../../parts/form.tsx'
import { useNotAtOnce } from '../../parts/not-at-once.ts'
import { query } from '../../router.ts'
import { draftFromScope, scopeFromDraft } from './scope.ts'
import { ScopeField } from './scope-field.tsx'

/** Interval at which the page reads the login: the program may be interrupted, and its time ends. */
const READ_MS = 2_000

/** Sentences for logins that wait for nobody any more. */
const OVER: Readonly<Record<Exclude<Login['status'], 'PENDING'>, string>> = {
  APPROVED: 'You allowed it. The program gets its key within seconds; you can close this page.',
  CONSUMED: 'The program has its key. You can close this page.',
  DENIED: 'You refused it. No key was created.',
  EXPIRED: 'Its time is over. No key was handed out; run the login again.',
}

/** Shows who asks for a key, and allows or refuses it. */
export function LoginPage() {
  const id = query.value.get('request') ?? ''
  const { data, error, reload } = useResource(
    id === '' ? null : `login ${id}`,
    signal => api('GET /v2/account/logins/{id}', { path: { id }, signal }),
    { everyMs: READ_MS },
  )
  return (
    <>
      <PageHead title="A program asks for a key" />
      {id === '' || error !== null ? (
        <p class="notice bad" role="alert">
          {id === '' ? 'The address names no login.' : 'This login is unknown, or it ended. Run the login again.'}
        </p>
      ) : data === null ? null : data.status === 'PENDING' ? (
        <Decision login={data} onDone={reload} />
      ) : (
        <p class="notice" role="status">
          {OVER[data.status]}
        </p>
      )}
    </>
  )
}

function Decision({ login, onDone }: { readonly login: Login; readonly onDone: () => void }) {
  const { id, address, agent, askedAt } = login
  const endpoints = useEndpoints().data ?? []
  const [name, setName] = useState(`login from ${address}`)
  const [scope, setScope] = useState(draftFromScope(who.value!.scope))
  const [problems, setProblems] = useState<Problems>({})
  const isReady = useNotAtOnce()
  const approve = async () => {
    const keyScope = scopeFromDraft(scope, endpoint => endpoints.some(one => one.id === endpoint))
    try {
      await api('POST /v2/account/login-approvals', { body: { id, name, scope: keyScope } })
    } catch (error) {
      setProblems(problemsFromError(error))
      return
    }
    onDone()
  }
  const deny = async () => {
    await api('POST /v2/account/login-denials', { body: { id } })
    onDone()
  }
  return (
    <section class="card">
      <p>
        A program at <b>{address}</b> asks for a key of the account <b>{who.value!.account.name}</b>. Allow it only if
        you started it yourself: it then acts in your name.
      </p>
      <dl class="facts">
        <dt>It calls itself</dt>
        <dd>{agent === '' ? <span class="faint">nothing</span> : agent}</dd>
        <dt>It asked</dt>
        <dd>
          <Ago at={askedAt} suffix=" ago" />
        </dd>
      </dl>
      {mayManage('write') ? (
        <>
          <FormProblems problems={problems} shown={['$.name', '$.scope']} />
          <TextField
            label="Name of the key"
            path="$.name"
            problems={problems}
            value={name}
            onChange={setName}
            hint="Keys has it under this name, and revokes it."
          />
          <ScopeField scope={scope} endpoints={endpoints} problems={problems} onChange={setScope} />
          <p>
            <Button kind="main" onPress={approve} disabled={!isReady || name.trim() === ''}>
              Allow
            </Button>{' '}
            <Button onPress={deny}>Refuse</Button>
          </p>
        </>
      ) : (
        <p class="notice bad" role="alert">
          Your key may not create keys. Sign in with one that may change the account.
        </p>
      )}
    </section>
  )
}
