/** A worker of the torture run: records each attempt in a file before it runs, and returns the record. */
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { start } from '@runyard/worker'

const { TORTURE_JOURNAL, TORTURE_AT_ONCE, TORTURE_RELEASE, RUNPOD_POD_ID } = process.env

await start({
  concurrency: Number(TORTURE_AT_ONCE),
  async handler({ id, input }, { signal }) {
    const who = { worker: RUNPOD_POD_ID, release: TORTURE_RELEASE }
    const attempt = { job: id, n: input.n, nonce: randomUUID(), ...who }
    appendFileSync(TORTURE_JOURNAL, `${JSON.stringify(attempt)}\n`)
    await sleep(input.ms, undefined, { signal })
    return attempt
  },
})
