/** Pages whose code is loaded when they are first shown, so that the first page appears soon. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button } from './basic.tsx'

/** A component whose code is loaded when it is first shown. */
export function later<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null
  const get = async () => {
    loaded ??= await load()
  }
  return function Later(props: Props) {
    const [state, setState] = useState<'waiting' | 'here' | 'failed'>(loaded === null ? 'waiting' : 'here')
    useEffect(() => {
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
        <span>This page could not be loaded: the server does not respond, or it runs another version now.</span>
        <Button onPress={() => location.reload()}>Load again</Button>
      </div>
    )
  }
}
