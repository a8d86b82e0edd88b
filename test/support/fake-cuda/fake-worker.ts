/**
 * A program that uses a card of the driver library for tests: `fake-worker.ts <MiB> [managed] [child <MiB>]`. It
 * takes memory, fills it, and obeys the lines of its input: `sum`, `import`, `synchronize`, `turns`, `child <MiB>`.
 * Each is answered by a line of JSON; the first line says that it is ready. Where FAKE_WORKER_SOCKET names a socket,
 * that is its input and output.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dlopen, getRawPointer } from 'node:ffi'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

const COUNT = 4096
const arena = new ArrayBuffer(1 << 16)
const base = getRawPointer(arena)
const view = new DataView(arena)
const bytes = new Uint8Array(arena)
const { FAKE_WORKER_SOCKET } = process.env
const link = FAKE_WORKER_SOCKET === undefined ? null : connect(FAKE_WORKER_SOCKET)
const [mib = '64', kind = ''] = process.argv.slice(2)

const { functions: cuda } = dlopen('libcuda.so.1', {
  cuInit: { arguments: ['u32'], return: 'i32' },
  cuDevicePrimaryCtxRetain: { arguments: ['pointer', 'i32'], return: 'i32' },
  cuCtxSetCurrent: { arguments: ['u64'], return: 'i32' },
  cuMemAlloc_v2: { arguments: ['pointer', 'u64'], return: 'i32' },
  cuMemAllocManaged: { arguments: ['pointer', 'u64', 'u32'], return: 'i32' },
  cuMemcpyHtoD_v2: { arguments: ['u64', 'pointer', 'u64'], return: 'i32' },
  cuMemcpyDtoH_v2: { arguments: ['pointer', 'u64', 'u64'], return: 'i32' },
  fakeImport: { arguments: [], return: 'i32' },
  fakeSynchronizing: { arguments: [], return: 'i32' },
  fakeTurns: { arguments: [], return: 'u32' },
})

need(cuda.cuInit(0), 'cuInit')
need(cuda.cuDevicePrimaryCtxRetain(base, 0), 'cuDevicePrimaryCtxRetain')
need(cuda.cuCtxSetCurrent(view.getBigUint64(0, true)), 'cuCtxSetCurrent')
const size = BigInt(mib) << 20n
need(kind === 'managed' ? cuda.cuMemAllocManaged(base, size, 1) : cuda.cuMemAlloc_v2(base, size), 'cuMemAlloc')
const at = view.getBigUint64(0, true)
for (let index = 0; index < COUNT; index += 1) bytes[8192 + index] = (index * 31 + Number(mib)) & 255
need(cuda.cuMemcpyHtoD_v2(at, base + 8192n, BigInt(COUNT)), 'cuMemcpyHtoD')
say({ pid: process.pid, sum: sum() })
for await (const line of createInterface({ input: link ?? process.stdin })) say(await answer(line))
process.kill(process.pid, 'SIGKILL')

async function answer(line: string): Promise<object> {
  const [word, value = ''] = line.split(' ')
  if (word === 'sum') return { sum: sum() }
  if (word === 'import') return { result: cuda.fakeImport() }
  if (word === 'synchronize') return { result: cuda.fakeSynchronizing() }
  if (word === 'turns') return { turns: cuda.fakeTurns() }
  const { FAKE_WORKER_SOCKET: _, ...env } = process.env
  const words = ['--disable-warning=ExperimentalWarning', import.meta.filename, value]
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'], env })
  const [ready] = await once(createInterface({ input: child.stdout }), 'line')
  return JSON.parse(ready) as object
}

function sum(): number {
  need(cuda.cuMemcpyDtoH_v2(base + 16_384n, at, BigInt(COUNT)), 'cuMemcpyDtoH')
  return bytes.subarray(16_384, 16_384 + COUNT).reduce((total, byte) => (total * 33 + byte) >>> 0, 0)
}

function need(result: number, call: string): void {
  if (result !== 0) throw new Error(`${call} answered ${result}`)
}

function say(message: object): void {
  const output = link ?? process.stdout
  output.write(`${JSON.stringify(message)}\n`)
}
