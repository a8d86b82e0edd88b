/**
 * Time for which bodies of 20 MB block the event loop while they are parsed, and the throughput: in the loop, and in
 * threads. One turn of the loop is one block. Its processor time counts, since every turn is late on a busy machine.
 *
 *     ./bin/node bench/large-bodies.ts [bodies of each kind]
 */
import { setTimeout as pause } from 'node:timers/promises'
import { inlineBodies } from '../sim/inline-bodies.ts'
import type { BodyParser } from '../src/ports/body-parser.ts'
import { BodyThreads } from '../src/system/bodies/body-threads.ts'

const BODIES = Number(process.argv[2] ?? 5)
const BYTES = 20_000_000
/** Size of the pieces in which a body arrives, as from a socket. */
const PIECE_BYTES = 65_536

const KINDS: Readonly<Record<string, string>> = {
  'one string': `"${'x'.repeat(BYTES)}"`,
  numbers: `[${Array.from({ length: BYTES / 8 }, (_, n) => n + 1e6)}]`,
  escapes: `"${'\\n\\"'.repeat(BYTES / 4)}"`,
  'small members': `{${Array.from({ length: BYTES / 20 }, (_, n) => `"k${n + 1e7}":${n + 1e6}`)}}`,
  'empty lists': `[${'[],'.repeat(BYTES / 3)}1]`,
}

function splitText(text: string): Uint8Array[] {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / PIECE_BYTES) }, (_, n) =>
    Uint8Array.from(bytes.subarray(n * PIECE_BYTES, (n + 1) * PIECE_BYTES)),
  )
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The longest turn of the loop until the work is done, sampled each millisecond. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let isDone = false
  let longest = 0
  let lastMs = processorMs()
  const done = pause(1)
    .then(work)
    .finally(() => {
      isDone = true
    })
  while (!isDone) {
    await pause(1)
    const now = processorMs()
    longest = Math.max(longest, now - lastMs)
    lastMs = now
  }
  await done
  return longest
}

async function measure(bodies: BodyParser, input: string): Promise<string> {
  const longest: number[] = []
  let tookMs = 0
  for (let n = 0; n < BODIES; n += 1) {
    const pieces = splitText(`{"input":{"a":${input}}}`)
    const start = performance.now()
    longest.push(await longestTurn(() => bodies.read(null, 'submission', pieces)))
    tookMs += performance.now() - start
  }
  longest.sort((a, b) => a - b)
  const middle = longest[Math.floor(BODIES / 2)]!
  const perSecond = (BODIES * BYTES) / 1e6 / (tookMs / 1000)
  return `${middle.toFixed(0).padStart(6)} ms ${longest.at(-1)!.toFixed(0).padStart(6)} ms ${perSecond.toFixed(0).padStart(6)} MB/s`
}

const threads = new BodyThreads()
console.log('longest turn of a body: median, worst; bytes a second')
for (const [kind, input] of Object.entries(KINDS)) {
  for (const [where, bodies] of Object.entries({ loop: inlineBodies, threads })) {
    console.log(`${kind.padEnd(14)} ${where.padEnd(8)} ${await measure(bodies, input)}`)
  }
}
