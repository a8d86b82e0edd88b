/** The mixed load of the soak: lives begin at a steady rate, each kind with its share. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { LoadKind } from './ledger.ts'
import { LIVES, type Soak } from './lives.ts'

/** Shares of the kinds of load, in percent. */
const SHARES: Readonly<Record<LoadKind, number>> = {
  run: 44,
  runsync: 14,
  'low priority': 8,
  long: 1,
  stream: 7,
  cancel: 5,
  timeout: 1,
  failure: 3,
  batch: 2,
  balanced: 15,
}
/** Maximum number of lives whose jobs have not ended: no more load begins at that number. */
const MAX_UNENDED = 500

/** Puts load on the server for a number of minutes, and waits until each job has ended and was read again. */
export async function putLoad(
  shared: Omit<Soak, 'over' | 'next'>,
  { minutes, rate }: { readonly minutes: number; readonly rate: number },
): Promise<void> {
  const { ledger } = shared
  const over = new AbortController()
  let numbers = 0
  const soak: Soak = { ...shared, over: over.signal, next: () => numbers++ }
  const lives = new Set<Promise<void>>()
  const untilMs = performance.now() + minutes * 60_000
  for (let nextMs = performance.now(); nextMs < untilMs; nextMs += 1_000 / rate) {
    await sleep(Math.max(0, nextMs - performance.now()))
    if (ledger.jobs.size - ledger.finals.size > MAX_UNENDED) {
      ledger.count('load held back')
      continue
    }
    const kind = chooseKind()
    const life = LIVES[kind](soak)
      .catch((error: Error) => ledger.fault('lost', '-', `${kind}: ${error.message}`))
      .finally(() => lives.delete(life))
    lives.add(life)
  }
  over.abort()
  await Promise.all(lives)
}

function chooseKind(): LoadKind {
  let part = Math.random() * Object.values(SHARES).reduce((sum, share) => sum + share, 0)
  for (const [kind, share] of Object.entries(SHARES)) {
    part -= share
    if (part < 0) return kind as LoadKind
  }
  return 'run'
}
