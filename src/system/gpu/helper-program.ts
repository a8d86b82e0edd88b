/**
 * The helper: a short-lived process that calls NVIDIA's driver for the server, since a call can take
 * minutes, can hang, and can end its process. `helper-program.ts`; reads a request a line from its input
 * and writes an answer a line.
 */
import { createInterface } from 'node:readline'
import { CardProgram } from './card-program.ts'
import { CheckpointCalls } from './checkpoint-calls.ts'
import { CudaLibrary } from './cuda-library.ts'
import type { HelperAnswer, HelperRequest } from './helper-messages.ts'

const library = CudaLibrary.open()
const calls = library === null ? null : new CheckpointCalls(library)
let program = null as CardProgram | null

for await (const line of createInterface({ input: process.stdin })) {
  try {
    say(answerTo(JSON.parse(line) as HelperRequest))
  } catch (error) {
    say({ problem: (error as Error).message })
  }
}

// A card is given back in order. An exit would unload the library while its threads run.
program?.leave()
process.kill(process.pid, 'SIGKILL')

function answerTo(request: HelperRequest): HelperAnswer {
  if (library === null || calls === null) return { missing: 'libcuda.so.1' }
  switch (request.op) {
    case 'enter':
    case 'allocate':
    case 'checksum':
    case 'memory':
    case 'work':
      program ??= new CardProgram(library)
      return program.answer(request, progress => say({ progress }))
    default:
      return calls.answer(request)
  }
}

function say(answer: HelperAnswer): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
