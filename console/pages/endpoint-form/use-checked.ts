/** Problems that the server finds in a form while somebody types. */
import { useEffect, useState } from 'preact/hooks'
import { request } from '../../client/api.ts'
import { type Problems, problemsFromError, useSending } from '../../parts/form.tsx'
import type { Body } from './body.ts'

const PAUSE_MS = 300

/** A form that can be sent, with its problems. */
export interface Checked {
  readonly problems: Problems
  readonly isSending: boolean
  /** Sends the form; from then on each change is checked. Resolves to true if the server accepted it. */
  readonly send: (act: () => Promise<unknown>) => Promise<boolean>
}

/** Lets the server check a body at each change after the first try, as a dry run. */
export function useChecked(method: 'POST' | 'PATCH', path: string, body: Body): Checked {
  const { problems, isSending, send, setProblems } = useSending()
  const [isTried, setTried] = useState(false)
  const text = JSON.stringify(body)
  useEffect(() => {
    if (!isTried || isSending) return
    if (text === '{}') return setProblems({})
    const end = new AbortController()
    const timer = setTimeout(async () => {
      try {
        await request(method, `${path}?dryRun=true`, { body, signal: end.signal })
        setProblems({})
      } catch (error) {
        if (!end.signal.aborted) setProblems(problemsFromError(error))
      }
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      end.abort()
    }
  }, [text, isTried])
  return {
    problems,
    isSending,
    send: async act => {
      const isDone = await send(act)
      setTried(!isDone)
      return isDone
    },
  }
}
