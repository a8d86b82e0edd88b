/** Buttons that wait before they can be pressed. */
import { useEffect, useState } from 'preact/hooks'

/**
 * Time for which such a button is disabled, in milliseconds: a double click on a page that opened this one would press
 * it unseen.
 */
const UNREADY_MS = 700

/** False for a moment after the component is shown, then true. */
export function useNotAtOnce(): boolean {
  const [isReady, setReady] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), UNREADY_MS)
    return () => clearTimeout(timer)
  }, [])
  return isReady
}
