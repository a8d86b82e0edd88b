/** The page that asks before a one-time link signs in. */
import { useState } from 'preact/hooks'
import { answerLink, type LinkOffer as Offer, who } from '../client/session.ts'
import { useNotAtOnce } from '../parts/not-at-once.ts'

/**
 * Shows the account of the link, and the one that it replaces. Another site may have opened the page, with a
 * link to an account of its own.
 */
export function LinkOffer({ offer }: { readonly offer: Offer }) {
  const [isSending, setSending] = useState(false)
  const isReady = useNotAtOnce()
  const answer = async (isWanted: boolean) => {
    setSending(true)
    await answerLink(isWanted)
  }
  const submit = (event: Event) => {
    event.preventDefault()
    void answer(true)
  }
  return (
    <main class="sign-in">
      <form class="card" onSubmit={submit}>
        <img src="/icon.svg" alt="" width="40" height="40" />
        <h1>Sign in to Runyard?</h1>
        <p>
          The link signs in as account <b>{offer.account.name}</b> <span class="faint">({offer.account.id})</span> with
          the key <b>{offer.keyName}</b>.
        </p>
        <Present offer={offer} />
        <p class="hint">
          Continue if you created the link yourself, with <code>runyard console</code>, or expected it.
        </p>
        <p>
          <button type="submit" class="button main" disabled={!isReady || isSending}>
            Sign in as {offer.account.name}
          </button>{' '}
          <button type="button" class="button" disabled={isSending} onClick={() => void answer(false)}>
            Cancel
          </button>
        </p>
      </form>
    </main>
  )
}

function Present({ offer }: { readonly offer: Offer }) {
  const present = who.value
  if (present == null) return null
  const { account, keyName, keyId } = present
  if (account.id !== offer.account.id) {
    return (
      <p class="notice bad" role="alert">
        You are signed in to another account, <b>{account.name}</b>, with the key {keyName}. The link replaces it: your
        actions then belong to {offer.account.name}.
      </p>
    )
  }
  return (
    <p class="hint">
      You are signed in to this account already, with {keyId === offer.keyId ? 'this key' : `the key ${keyName}`}.
    </p>
  )
}
