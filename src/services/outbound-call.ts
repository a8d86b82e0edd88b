import type { OutboundRequest, OutboundResult } from '../ports/outbound.ts'
import type { Ports } from '../ports/ports.ts'
import { joinSignals } from '../ports/signals.ts'

/** The result of a call, and whether the target had a public address; false where it was not found. */
export type CallResult = OutboundResult & { readonly isPublic: boolean }

/**
 * Posts once, for a limited time. Never throws; a call that is given up is a problem.
 * @param signal gives the call up
 */
export async function callOutbound(
  { outbound, clock }: Pick<Ports, 'outbound' | 'clock'>,
  request: Omit<OutboundRequest, 'signal' | 'onTarget'>,
  { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<CallResult> {
  let isPublic = false
  const onTarget = (isPublicTarget: boolean) => {
    isPublic = isPublicTarget
  }
  const late = new AbortController()
  const cancelTimer = clock.after(timeoutMs, () => late.abort())
  using either = joinSignals(late.signal, signal)
  const givenUp = new Promise<OutboundResult>(resolve => {
    const problem = `no answer within ${timeoutMs / 1000} s`
    either.signal.addEventListener('abort', () => resolve({ problem }), { once: true })
  })
  try {
    const result = await Promise.race([outbound.post({ ...request, signal: either.signal, onTarget }), givenUp])
    return { ...result, isPublic }
  } finally {
    cancelTimer()
  }
}
