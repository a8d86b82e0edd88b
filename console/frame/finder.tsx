/** The finder: goes to a page, an endpoint, or the job or worker of an id. Ctrl-K opens it. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { request } from '../client/api.ts'
import { mayManage } from '../client/session.ts'
import { useEndpoints } from '../client/uses.ts'
import { finderShown } from '../keyboard.ts'
import { Dialog } from '../parts/dialog.tsx'
import { navigate } from '../router.ts'
import { findPlaces, isIdLike, type Located, objectPath, type Place } from './finder-matches.ts'

const CLOSE = () => (finderShown.value = false)

/** The dialog of the finder. @param pages the pages that the key of the session may open */
export function Finder({ pages }: { readonly pages: readonly Place[] }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const [problem, setProblem] = useState<string | null>(null)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  const endpoints = useEndpoints().data ?? []
  const endpointPlaces = endpoints.map(({ id, name }) => ({ title: name, note: id, path: `/endpoints/${id}` }))
  const found = findPlaces([...pages, ...(mayManage('read') ? endpointPlaces : [])], text)
  const go = (path: string) => {
    CLOSE()
    navigate(path)
  }
  const submit = async (event: Event) => {
    event.preventDefault()
    const chosen = found[at]
    if (chosen !== undefined) return go(chosen.path)
    if (!isIdLike(text)) return setProblem('Nothing has this name.')
    const located = await locate(text.trim())
    if (located === null) setProblem('No endpoint, worker or job has this id, or your key may not see it.')
    else go(objectPath(located))
  }
  const move = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (by === 0 || found.length === 0) return
    event.preventDefault()
    setAt((at + by + found.length) % found.length)
  }
  return (
    <Dialog title="Go to" onClose={CLOSE}>
      <form onSubmit={event => void submit(event)}>
        <input
          ref={input}
          type="search"
          aria-label="Page, endpoint, or id of a job or worker"
          placeholder="Page, endpoint, or id of a job or worker"
          autocomplete="off"
          spellcheck={false}
          value={text}
          onKeyDown={move}
          onInput={event => {
            setText(event.currentTarget.value)
            setAt(0)
            setProblem(null)
          }}
        />
        <ul class="places" aria-label="Places">
          {found.map(({ title, note, path }, index) => (
            <li key={path} class={index === at ? 'chosen' : ''}>
              <a href={path} onClick={CLOSE}>
                {title} <span class="faint">{note}</span>
              </a>
            </li>
          ))}
        </ul>
        {problem === null && (found.length > 0 || text === '') ? null : (
          <p class="hint" role="status">
            {problem ?? (isIdLike(text) ? 'Enter looks for a job or a worker with this id.' : 'Nothing has this name.')}
          </p>
        )}
      </form>
    </Dialog>
  )
}

/** The object with this id; null for none that the key may see. */
async function locate(id: string): Promise<Located | null> {
  const response = await request('GET', `/ops/locate/${encodeURIComponent(id)}`).catch(() => null)
  return response === null ? null : ((await response.json()) as Located)
}
