/** The frame around all pages: the session, the menu, and the state of the event stream. */
import { Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../client/api.ts'
import { followLive, liveState, pollInstead } from '../client/live.ts'
import { useResource } from '../client/resource.ts'
import {
  endReason,
  isAway,
  linkOffer,
  linkProblem,
  mayManage,
  mayOperate,
  signIn,
  signOut,
  who,
} from '../client/session.ts'
import { appTopic } from '../client/topics.ts'
import { finderShown, keysShown, PAGES_BY_KEY } from '../keyboard.ts'
import { Messages } from '../parts/announce.tsx'
import { Button, Choice, PageHead, State } from '../parts/basic.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { TextField } from '../parts/form.tsx'
import { later } from '../parts/later.tsx'
import { matchPath, path } from '../router.ts'
import { now } from '../server-clock.ts'
import { chooseTheme, type Theme, theme } from '../theme.ts'
import { LinkOffer } from './link-offer.tsx'
import { PAGES } from './pages.tsx'

const Finder = later(() => import('./finder.tsx').then(({ Finder: shown }) => shown))

/** The root: the sign-in page, or the frame with a page in it. */
export function Console() {
  const session = who.value
  const offer = linkOffer.value
  useEffect(() => {
    if (session == null) return
    const end = new AbortController()
    if (mayManage('read')) followLive(session.keyId, session.lastEventId, end.signal)
    else pollInstead(end.signal)
    return () => end.abort()
  }, [session])
  if (session === undefined)
    return isAway.value ? (
      <p class="live-cut" role="status">
        ◆ The server does not answer. This page tries again.
      </p>
    ) : null
  return (
    <>
      {offer !== null ? <LinkOffer offer={offer} /> : session === null ? <SignIn /> : <Frame key={session.keyId} />}
      {keysShown.value ? <Keys /> : null}
      {finderShown.value && session !== null && offer === null ? <Finder pages={listPages()} /> : null}
      <Messages />
    </>
  )
}

function Frame() {
  const [isShown, setShown] = useState(false)
  const at = path.value
  useEffect(() => setShown(false), [at])
  return (
    <>
      <a class="skip button" href="#page">
        Skip to the page
      </a>
      <header class="top-bar">
        <a href="/" class="button quiet">
          <img src="/icon.svg" alt="" width="22" height="22" /> Runyard
        </a>
        <Button onPress={() => setShown(!isShown)} aria-expanded={isShown}>
          Menu
        </Button>
      </header>
      <div class="frame">
        <Side isShown={isShown} />
        <div>
          <LiveCut />
          <main class="page" id="page">
            <Page />
          </main>
        </div>
      </div>
    </>
  )
}

const GROUPS: readonly { readonly title: string | null; readonly paths: readonly string[] }[] = [
  {
    title: null,
    paths: [
      '/',
      '/endpoints',
      '/apps',
      '/tasks',
      '/models',
      '/playground',
      '/jobs',
      '/batches',
      '/webhooks',
      '/events',
    ],
  },
  { title: 'Workers run on', paths: ['/machine', '/templates', '/secrets', '/registries', '/volumes'] },
  { title: 'Account', paths: ['/usage', '/alerts', '/keys', '/accounts', '/audit'] },
]

/** Pages for keys that have rights on jobs only. */
const OF_JOBS = new Set(['/', '/models', '/playground', '/jobs', '/batches', '/webhooks'])
/** Pages that only the operator's keys may read. */
const OF_OPERATOR = new Set(['/machine', '/accounts', '/audit'])

function Side({ isShown }: { readonly isShown: boolean }) {
  const at = path.value
  const { account, keyName, server } = who.value!
  const apps = useResource(
    mayManage('read') ? 'any app' : null,
    signal => api('GET /v2/account/apps', { query: { limit: 1 }, signal }),
    { on: appTopic },
  ).data?.apps
  const tasks = useResource(
    mayManage('read') ? 'any task' : null,
    signal => api('GET /v2/pods', { query: { limit: 1 }, signal }),
    { on: event => event.type.startsWith('endpoint.') },
  ).data?.pods
  // Most accounts have none of these, and then no need of their pages.
  const counts: Readonly<Record<string, number | undefined>> = {
    '/apps': apps?.length ?? 0,
    '/tasks': tasks?.length ?? 0,
  }
  const isListed = (of: string) => isForKey(of) && (at === of || counts[of] !== 0)
  const isCurrent = (of: string) => (of === '/' ? at === '/' : at === of || at.startsWith(`${of}/`))
  return (
    <aside class={`side${isShown ? ' shown' : ''}`} aria-label="Runyard">
      <a href="/" class="brand">
        <img src="/icon.svg" alt="" width="26" height="26" /> Runyard
      </a>
      <nav aria-label="Pages">
        {GROUPS.filter(({ paths }) => paths.some(isForKey)).map(({ title, paths }) => (
          <Fragment key={paths[0]}>
            {title === null ? null : <h2>{title}</h2>}
            {PAGES_BY_KEY.filter(page => paths.includes(page.path) && isListed(page.path)).map(page => (
              <a key={page.path} href={page.path} aria-current={isCurrent(page.path) ? 'page' : undefined}>
                {page.title}
              </a>
            ))}
          </Fragment>
        ))}
      </nav>
      <div class="foot">
        <Choice<Theme>
          label="Theme"
          value={theme.value}
          options={[
            ['system', 'Auto'],
            ['light', 'Light'],
            ['dark', 'Dark'],
          ]}
          onChange={chooseTheme}
        />
        <span>
          <b>{account.name}</b>
          <br />
          <span class="faint">key {keyName}</span>
          <KeyBadge />
        </span>
        <span>
          <Button onPress={signOut}>Sign out</Button>{' '}
          <Button kind="quiet" onPress={() => (keysShown.value = true)} aria-label="Keyboard shortcuts">
            ?
          </Button>
        </span>
        <span class="faint">Runyard {server.version}</span>
      </div>
    </aside>
  )
}

/** Note that the key of the session has some rights only, which explains missing buttons. */
function KeyBadge() {
  const { type } = who.value!.scope
  if (type === 'all') return null
  return (
    <>
      <br />
      <State tone="off" title="Your key has some rights only: buttons for the rest are left out">
        {type === 'read-only' ? 'reads only' : 'limited rights'}
      </State>
    </>
  )
}

/** The pages that the key of the session may open. */
function listPages() {
  return PAGES_BY_KEY.filter(page => isForKey(page.path)).map(({ title, path: to }) => ({
    title,
    note: 'page',
    path: to,
  }))
}

/** True if the key of the session may read a page. */
function isForKey(of: string): boolean {
  if (!mayManage('read')) return OF_JOBS.has(of)
  return mayOperate() || !OF_OPERATOR.has(of)
}

/** Notice while the event stream is down: the page may be out of date. */
function LiveCut() {
  const { isOpen, retryAtMs } = liveState.value
  if (isOpen) return null
  const seconds = retryAtMs === null ? 0 : Math.max(0, Math.ceil((retryAtMs - now.value) / 1_000))
  return (
    <div class="live-cut" role="status">
      ◆ Not connected to the server: what you see may be old. {/* Read out once, and not each second. */}
      <span aria-hidden="true">{seconds > 0 ? `Next try in ${seconds} s.` : 'Trying now.'}</span>
    </div>
  )
}

function Page() {
  const at = path.value
  for (const { pattern, page: Found } of PAGES) {
    const parameters = matchPath(pattern, at)
    if (parameters !== null) return <Found {...parameters} />
  }
  return (
    <>
      <PageHead title="This page does not exist" />
      <a href="/">Go home</a>
    </>
  )
}

function Keys() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (keysShown.value = false)}>
      <dl class="facts">
        <dt>
          <kbd>Ctrl</kbd> <kbd>K</kbd>
        </dt>
        <dd>Go to a page, an endpoint, or the id of a job or worker</dd>
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>Search</dd>
        <dt>
          <kbd>j</kbd> <kbd>k</kbd>
        </dt>
        <dd>Next row, previous row</dd>
        <dt>
          <kbd>Enter</kbd>
        </dt>
        <dd>Open the row</dd>
        <dt>
          <kbd>x</kbd>
        </dt>
        <dd>Select the row, where rows can be selected</dd>
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>Close</dd>
        {PAGES_BY_KEY.map(page => (
          <Fragment key={page.key}>
            <dt>
              <kbd>g</kbd> <kbd>{page.key}</kbd>
            </dt>
            <dd>{page.title}</dd>
          </Fragment>
        ))}
      </dl>
    </Dialog>
  )
}

/** Takes an API key and starts a session with it. */
function SignIn() {
  const [key, setKey] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
  const message = problem ?? linkProblem.value
  const ended = endReason.value
  const submit = async (event: Event) => {
    event.preventDefault()
    setSending(true)
    setProblem(await signIn({ key: key.trim() }))
    setSending(false)
  }
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <img src="/icon.svg" alt="" width="40" height="40" />
        <h1>Sign in to Runyard</h1>
        <p class="hint">With an API key. It is sent to your server once and is not stored in this browser.</p>
        {ended === null || message !== null ? null : (
          <p class="notice wait" role="status">
            The session ended: {ended}.
          </p>
        )}
        <TextField label="API key" type="password" value={key} onChange={setKey} required />
        {message === null ? null : (
          <p class="notice bad" role="alert">
            {message}
          </p>
        )}
        <button type="submit" class="button main" disabled={isSending || key.trim() === ''}>
          Sign in
        </button>
        <p class="hint">
          The server's own key is in the file <code>api-key</code> of its data directory. <code>runyard console</code>{' '}
          prints a link that signs in without one.
        </p>
      </form>
    </main>
  )
}
