/** The page for visitors who are not signed in. */
import { useState } from 'preact/hooks'
import { linkProblem, signIn } from '../client/session.ts'
import { TextField } from '../parts/form.tsx'

/** Takes an API key and starts a session with it. */
export function SignIn() {
  const [key, setKey] = useState('')
  const [problem, setProblem] = useState<string | null>(null)
  const [isSending, setSending] = useState(false)
  const said = problem ?? linkProblem.value
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
        <TextField label="API key" type="password" value={key} onChange={setKey} required />
        {said === null ? null : (
          <p class="notice bad" role="alert">
            {said}
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
