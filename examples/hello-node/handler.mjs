import { setTimeout as sleep } from 'node:timers/promises'
import { start } from '@runyard/worker'

async function handler({ input }, { signal }) {
  const { name = 'world', sleepMs = 0 } = input ?? {}
  if (sleepMs > 0) await sleep(sleepMs, undefined, { signal })
  return { message: `Hello, ${name}!`, sleptMs: sleepMs }
}

await start({ handler })
