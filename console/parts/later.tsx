/** Pages whose code is loaded when they are first shown, so that the first page appears soon. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Backoff, pause } from '../client/event-source.ts'
import { Button } from './basic.tsx'

/** Storage key of the time of the last load of the page for a part that was missing. */
const LOADED = 'runyard.loaded'
/** Time in which such a load is not repeated: a part that a working server does not have is missing for good. */
const LOAD_GAP_MS = 20_000

/** Loads the page again once the server responds: browsers do not fetch a part again that failed once. */
async function loadAgain(end: AbortSignal): Promise<void> {
  const backoff = new Backoff()
  while (!end.aborted) {
    await pause(backoff.next(), end)
    const response = await fetch('/', { cache: 'no-store', signal: end }).catch(() => null)
    if (end.aborted || response?.ok !== true) continue
    if (performance.timeOrigin - Number(sessionStorage.getItem(LOADED) ?? 0) < LOAD_GAP_MS) return
    sessionStorage.setItem(LOADED, String(performance.timeOrigin + performance.now()))
    location.reload()
    return
  }
}

/** A component whose code is loaded when it is first shown. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null
  const get = async () => {
    loaded ??= await load()
  }
  return function Later(props: Props) {
    const [state, setState] = useState<'waiting' | 'here' | 'failed'>(loaded === null ? 'waiting' : 'here')
    useEffect(() => {
      if (state === 'failed') {
        const end = new AbortController()
        void loadAgain(end.signal)
        return () => end.abort()
      }
      if (state !== 'waiting') return
      let isGone = false
      get().then(
        () => isGone || setState('here'),
        () => isGone || setState('failed'),
      )
      return () => {
        isGone = true
      }
    }, [state])
    if (state === 'here' && loaded !== null) {
      const Shown = loaded
      return <Shown {...props} />
    }
    if (state === 'waiting') return <p class="faint loading">Loading…</p>
    return (
      <div class="notice bad" role="alert">
        <span>
          This page could not be loaded: the server does not respond, or it runs another version now. It loads again
          once the server responds.
        </span>
        <Button onPress={() => location.reload()}>Load again</Button>
      </div>
    )
  }
}
