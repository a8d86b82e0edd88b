/** Calls of the kernel that a worker in a cage may make: the program of the filter, run as the kernel runs it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemCallFilter } from '../../../src/drivers/cage/system-call-filter.ts'

const X64 = 0xc000_003e
const ARM64 = 0xc000_00b7
const I386 = 0x4000_0003
const ALLOW = 0x7fff_0000
const refusedWith = (errno: number) => 0x0005_0000 | errno
const [EPERM, ENOSYS, EAFNOSUPPORT] = [refusedWith(1), refusedWith(38), refusedWith(97)]

interface Call {
  readonly architecture: number
  readonly number: number
  /** Its first argument, 64 bits. */
  readonly first?: bigint
}

/** The action of the kernel for a call. */
function run(program: Buffer, { architecture, number, first = 0n }: Call): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(number, 0)
  data.writeUInt32LE(architecture, 4)
  data.writeBigUInt64LE(first, 16)
  let accumulator = 0
  for (let at = 0; ; at += 1) {
    const code = program.readUInt16LE(at * 8)
    const value = program.readUInt32LE(at * 8 + 4)
    const jump = (isTrue: boolean) => program.readUInt8(at * 8 + (isTrue ? 2 : 3))
    if (code === 0x06) return value
    if (code === 0x20) accumulator = data.readUInt32LE(value)
    else if (code === 0x15) at += jump(accumulator === value)
    else if (code === 0x35) at += jump(accumulator >= value)
    else if (code === 0x45) at += jump((accumulator & value) !== 0)
    else assert.fail(`unknown instruction ${code}`)
  }
}

for (const [name, architecture, calls] of [
  [
    'x64',
    X64,
    { read: 0, fork: 57, bpf: 321, keyctl: 250, clone: 56, clone3: 435, unshare: 272, socket: 41, pair: 53 },
  ],
  [
    'arm64',
    ARM64,
    { read: 63, fork: 435, bpf: 280, keyctl: 219, clone: 220, clone3: 435, unshare: 97, socket: 198, pair: 199 },
  ],
] as const) {
  const filter = systemCallFilter(name)!
  const answer = (number: number, first = 0n) => run(filter, { architecture, number, first })

  test(`${name}: what programs need is permitted, and what reaches the kernel past namespaces is refused`, () => {
    assert.deepEqual(
      [calls.read, calls.bpf, calls.keyctl].map(number => answer(number)),
      [ALLOW, EPERM, EPERM],
    )
    // The older call, to which libraries fall back, can be read.
    assert.equal(answer(calls.clone3), ENOSYS)
  })

  test(`${name}: threads and processes can be made, and no namespaces`, () => {
    const thread = 0x003d_0f00n
    assert.deepEqual(
      [answer(calls.clone, thread), answer(calls.clone, 17n), answer(calls.unshare, 0x400n)],
      [ALLOW, ALLOW, ALLOW],
    )
    for (const flag of [
      0x0002_0000n,
      0x0200_0000n,
      0x0400_0000n,
      0x0800_0000n,
      0x1000_0000n,
      0x2000_0000n,
      0x4000_0000n,
    ]) {
      assert.deepEqual([answer(calls.clone, thread | flag), answer(calls.unshare, flag)], [EPERM, EPERM])
    }
    assert.equal(answer(calls.unshare, 0x80n), EPERM)
  })

  test(`${name}: sockets are of the network and of files, whatever the upper half of the argument is`, () => {
    for (const number of [calls.socket, calls.pair]) {
      for (const family of [1n, 2n, 10n, 16n]) assert.equal(answer(number, family), ALLOW)
      for (const family of [0n, 17n, 38n, 40n, 0x1_0000_0028n]) assert.equal(answer(number, family), EAFNOSUPPORT)
    }
  })

  test(`${name}: calls of another architecture do not exist`, () => {
    for (const other of [I386, name === 'x64' ? ARM64 : X64]) {
      assert.equal(run(filter, { architecture: other, number: calls.read }), ENOSYS)
    }
    if (name === 'x64') assert.equal(answer(0x4000_0000 + calls.read), ENOSYS)
  })
}

test('another architecture has no filter', () => assert.equal(systemCallFilter('riscv64'), null))
