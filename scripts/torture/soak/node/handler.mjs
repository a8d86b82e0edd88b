/**
 * A worker of the soak on `@runyard/worker`: records each attempt in a file before it runs, and
 * returns or yields the record.
 */
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { start } from '@runyard/worker'

const { TORTURE_JOURNAL, TORTURE_AT_ONCE, TORTURE_STREAMS, RUNPOD_POD_ID } = process.env

function record({ id, input }) {
  const attempt = { job: id, n: input.n, nonce: randomUUID(), worker: RUNPOD_POD_ID }
  appendFileSync(TORTURE_JOURNAL, `${JSON.stringify(attempt)}\n`)
  return attempt
}

async function whole(job, { signal }) {
  const { n, ms, fails } = job.input
  const attempt = record(job)
  await sleep(ms, undefined, { signal })
  if (fails) throw new Error(`job ${n} fails as it should`)
  return attempt
}

async function* inChunks(job, { signal }) {
  const { ms, chunks } = job.input
  const attempt = record(job)
  for (let index = 0; index < chunks; index += 1) {
    await sleep(ms / chunks, undefined, { signal })
    yield { ...attempt, index }
  }
}

await start({
  concurrency: Number(TORTURE_AT_ONCE),
  returnAggregateStream: true,
  handler: TORTURE_STREAMS === 'yes' ? inChunks : whole,
})
