/** A value of a job that is too large for the page: it can be saved whole. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { bytes } from '../../../format.ts'
import { Button } from '../../../parts/basic.tsx'
import { saveLarge } from './save-large.ts'

/** The button that saves an input or an output, with its progress. */
export function LargeValue({
  endpointId,
  jobId,
  part,
  size,
}: {
  readonly endpointId: string
  readonly jobId: string
  readonly part: 'input' | 'output'
  /** Size in bytes. */
  readonly size: number | null
}) {
  const [received, setReceived] = useState<number | null>(null)
  const end = useRef<AbortController | null>(null)
  useEffect(() => () => end.current?.abort(), [])
  const save = async () => {
    end.current = new AbortController()
    setReceived(0)
    try {
      await saveLarge({ endpointId, jobId, part, size }, setReceived, end.current.signal)
    } catch (error) {
      if ((error as Error).name !== 'AbortError') throw error
    } finally {
      setReceived(null)
    }
  }
  return (
    <div class="tools" aria-live="polite">
      <span class="faint">{bytes(size)}: too large to show here.</span>
      <Button onPress={save} aria-label={`Download whole ${part}`}>
        Download whole
      </Button>
      {received === null ? null : (
        <>
          <progress aria-label="Received" max={size ?? undefined} value={received} />
          <Button onPress={() => end.current?.abort()}>Stop</Button>
        </>
      )}
    </div>
  )
}
