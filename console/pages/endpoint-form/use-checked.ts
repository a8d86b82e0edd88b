/** What the server says about a form while it is typed. */
import { useEffect, useState } from 'preact/hooks'
import { request } from '../../client/api.ts'
import { type Problems, problemsOf, useSending } from '../../parts/form.tsx'
import type { Body } from './body.ts'

const PAUSE_MS = 300

/** A form that can be sent, with its problems. */
export interface Checked {
  readonly problems: Problems
  readonly isSending: boolean
  /** Sends it; from then on it is checked at each change. Whether it was accepted. */
  readonly send: (act: () => Promise<unknown>) => Promise<boolean>
}

/** Has the server check a body at each change after the first try, without a change of anything. */
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
        if (!end.signal.aborted) setProblems(problemsOf(error))
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
