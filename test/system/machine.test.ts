/** The machine as the vendors' tools report it: scripts stand for the tools. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gpuSummary } from '../../src/core/hardware/inventory.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { systemClock } from '../../src/system/clock.ts'
import { parseAmdUse, parseNvidiaUse } from '../../src/system/hardware/gpu-use.ts'
import { createMachine, describeGpus, FRESH_MS, KEPT_MS, USE_KEPT_MS } from '../../src/system/hardware/machine.ts'

const CARD = (index: number, name: string, mib: number | string) =>
  `${index}, GPU-${index}aaa, ${name}, ${mib}, 550.54.15`

/** Output of the script for each of the three questions; `run` comes first in each. */
interface Fake {
  readonly csv?: string
  readonly xml?: string
  readonly list?: string
  readonly run?: string
}

const XML = (cards: string, cuda = '12.4') =>
  `<nvidia_smi_log><cuda_version>${cuda}</cuda_version>${cards}</nvidia_smi_log>`
const XML_CARD = (uuid: string, more = '') => `<gpu id="x"><uuid>${uuid}</uuid>${more}</gpu>`

function script({ csv = '', xml = XML(''), list = '', run = '' }: Fake): string {
  return `#!/bin/sh
${run}
case "$*" in
  *-q*-x*) cat <<'END'
${xml}
END
  ;;
  *-L*) cat <<'END'
${list}
END
  ;;
  *) cat <<'END'
${csv}
END
  ;;
esac
`
}

function open(context: TestContext, more: { env?: NodeJS.ProcessEnv; toolMs?: number } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-machine-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const events: [string, unknown][] = []
  const topics: string[] = []
  let aheadMs = 0
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs }
  const machine = createMachine({
    clock,
    notifier: { publish: topic => void topics.push(topic) },
    toolMs: more.toolMs ?? 5_000,
    emit: (name, fields) => void events.push([name, fields]),
    env: { PATH: `${folder}:/usr/bin:/bin`, ...more.env },
  })
  const install = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    chmodSync(join(folder, name), 0o755)
  }
  return {
    folder,
    machine,
    events,
    topics,
    install,
    nvidia: (fake: Fake) => install('nvidia-smi', script(fake)),
    /** Lets time pass. */
    pass: (ms: number) => {
      aheadMs += ms
    },
    /** The use of the GPUs once it is measured. */
    async measured() {
      for (let tries = 0; tries < 400; tries += 1) {
        const use = machine.gpuUse()
        if (use.size > 0) return use
        await new Promise<void>(resolve => void systemClock.after(10, resolve))
      }
      throw new Error('the use was not measured')
    },
    /** Result after another measurement; the measurement itself is in the background. */
    async later(ms = FRESH_MS) {
      aheadMs += ms
      const before = await machine.parts()
      for (let tries = 0; tries < 400; tries += 1) {
        const now = await machine.parts()
        if (now !== before) return now
        await new Promise<void>(resolve => void systemClock.after(10, resolve))
      }
      throw new Error('the machine was not looked at again')
    },
  }
}

test('a machine without any tool has its processors and memory, no GPU, and no problem', async context => {
  const { machine, events } = open(context)
  const { vcpus, memoryGb, gpus, hadGpus, problem } = await machine.parts()
  assert.equal(vcpus, availableParallelism())
  assert.ok(memoryGb >= 1)
  assert.deepEqual([gpus, hadGpus, problem], [[], false, null])
  assert.deepEqual(events, [['machine.changed', { vcpus, memoryGb, gpus: 'none' }]])
  const wait = 'GPUs: none; workers of GPU endpoints wait (--require-gpu)'
  assert.equal(await describeGpus(machine, systemClock, { requireGpu: true }), wait)
  assert.match(await describeGpus(machine, systemClock, { requireGpu: false }), /run on the CPU; --require-gpu/)
})

test('several cards, known and unknown, with their driver and CUDA version', async context => {
  const { machine, nvidia } = open(context)
  const csv = [CARD(0, 'NVIDIA L4', 23034), CARD(1, 'NVIDIA L4', 23034), CARD(2, 'NVIDIA, Inc. Whatever 9000', 49140)]
  nvidia({ csv: csv.join('\n'), xml: XML(XML_CARD('GPU-0aaa')) })
  const { gpus, hadGpus, problem } = await machine.parts()
  assert.deepEqual(gpus[0], {
    index: 0,
    uuid: 'GPU-0aaa',
    name: 'NVIDIA L4',
    vendor: 'NVIDIA',
    memoryGb: 22,
    driver: '550.54.15',
    cuda: '12.4',
    mig: null,
    problem: null,
  })
  const summary = '2 x NVIDIA L4 (pool AMPERE_24), 1 x NVIDIA, Inc. Whatever 9000 (pool AMPERE_48)'
  assert.deepEqual([gpuSummary(gpus), hadGpus, problem], [summary, true, null])
  assert.equal(await describeGpus(machine, systemClock, { requireGpu: false }), `GPUs: ${summary}`)
})

test('the instances of a MIG card are GPUs, and a card without instances in MIG mode is reported', async context => {
  const { machine, nvidia } = open(context)
  const isParted = '<mig_mode><current_mig>Enabled</current_mig></mig_mode>'
  nvidia({
    csv: [CARD(0, 'NVIDIA A100-SXM4-80GB', 81920), CARD(1, 'NVIDIA A100-SXM4-80GB', 81920)].join('\n'),
    xml: XML(XML_CARD('GPU-0aaa', isParted) + XML_CARD('GPU-1aaa', isParted)),
    list: `GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0aaa)
  MIG 3g.40gb     Device  0: (UUID: MIG-11111111-aaaa)
  MIG 1g.10gb+me  Device  1: (UUID: MIG-22222222-bbbb)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1aaa)`,
  })
  const { gpus, problem } = await machine.parts()
  const short = gpus.map(({ index, uuid, name, mig, memoryGb }) => [index, uuid, name, mig, memoryGb])
  assert.deepEqual(short, [
    [0, 'MIG-11111111-aaaa', 'NVIDIA A100-SXM4-80GB MIG 3g.40gb', '3g.40gb', 40],
    [0, 'MIG-22222222-bbbb', 'NVIDIA A100-SXM4-80GB MIG 1g.10gb+me', '1g.10gb+me', 10],
    [1, 'GPU-1aaa', 'NVIDIA A100-SXM4-80GB', null, 80],
  ])
  assert.equal(problem, 'GPU 1: MIG is on, and it has no instances')
})

test('the health of a card is reported as the tool has it', async context => {
  const { machine, nvidia, events } = open(context)
  const failed = '<remapped_row_failure>Yes</remapped_row_failure>'
  const stuck = '<gpu_recovery_action>Reset</gpu_recovery_action>'
  const well = '<remapped_row_failure>No</remapped_row_failure><gpu_recovery_action>None</gpu_recovery_action>'
  nvidia({
    csv: [0, 1, 2].map(index => CARD(index, 'NVIDIA L4', 23034)).join('\n'),
    xml: XML(XML_CARD('GPU-0aaa', failed) + XML_CARD('GPU-1aaa', stuck) + XML_CARD('GPU-2aaa', well)),
  })
  const { gpus, problem } = await machine.parts()
  const problems = ['its memory has failed', 'its driver asks for a reset', null]
  assert.deepEqual(
    gpus.map(gpu => gpu.problem),
    problems,
  )
  assert.equal(problem, 'GPU 0: its memory has failed; GPU 1: its driver asks for a reset')
  assert.deepEqual(events.at(-1), ['machine.problem', { problem }])
})

test('a card without memory of its own has that of the machine', async context => {
  const { machine, nvidia } = open(context)
  nvidia({ csv: CARD(0, 'NVIDIA GB10', '[N/A]') })
  const { gpus, memoryGb } = await machine.parts()
  assert.deepEqual([gpus[0]?.name, gpus[0]?.memoryGb], ['NVIDIA GB10', memoryGb])
})

test('a card that falls off stays as one that no worker gets, and others are not touched', async context => {
  const { machine, nvidia, later, topics } = open(context)
  const cards = [CARD(0, 'NVIDIA L4', 23034), CARD(1, 'NVIDIA L4', 23034)]
  nvidia({ csv: cards.join('\n') })
  await machine.parts()
  nvidia({ csv: [cards[0]!, '1, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]'].join('\n') })
  const lost = await later()
  const problems = (parts: typeof lost) => parts.gpus.map(({ index, problem }) => [index, problem])
  assert.deepEqual(problems(lost), [
    [0, null],
    [1, 'it does not answer'],
  ])
  assert.deepEqual(topics, ['machine'])
  nvidia({ csv: `${cards[0]}\nUnable to determine the device handle for GPU0000:0A:00.0: Unknown Error` })
  assert.match((await later()).problem ?? '', /GPU 1: it is no longer listed; GPU 0000:0A:00.0 does not answer/)
  nvidia({ csv: cards.join('\n') })
  assert.deepEqual((await later()).problem, null)
  nvidia({ csv: cards[0]! })
  assert.deepEqual((await later()).gpus.length, 2)
  assert.deepEqual((await later(KEPT_MS)).gpus.length, 1)
})

test('a tool that fails at the start means no GPU that is known, and says so', async context => {
  const { machine, nvidia } = open(context)
  nvidia({ run: "echo 'NVIDIA-SMI has failed because it could not communicate with the driver.'; exit 9" })
  const { gpus, hadGpus, problem } = await machine.parts()
  assert.deepEqual([gpus, hadGpus], [[], false])
  assert.equal(
    problem,
    'nvidia-smi ended with code 9: NVIDIA-SMI has failed because it could not communicate with the driver.',
  )
})

test('a tool that says that there is no card is no problem', async context => {
  const { machine, nvidia } = open(context)
  nvidia({ run: "echo 'No devices were found'; exit 6" })
  assert.deepEqual((await machine.parts()).problem, null)
})

test('cards stay for ten minutes while the tool fails, and are remembered after that', async context => {
  const { machine, nvidia, later, events } = open(context)
  nvidia({ csv: CARD(0, 'NVIDIA L4', 23034) })
  await machine.parts()
  nvidia({ run: 'exit 255' })
  const failing = await later()
  assert.deepEqual([failing.gpus.length, failing.problem], [1, 'nvidia-smi ended with code 255'])
  assert.deepEqual(events.at(-1), ['machine.problem', { problem: 'nvidia-smi ended with code 255' }])
  const gone = await later(KEPT_MS)
  assert.deepEqual([gone.gpus, gone.hadGpus, gone.problem], [[], true, 'nvidia-smi ended with code 255'])
})

test('unreadable output is reported as that', async context => {
  const { machine, nvidia } = open(context)
  nvidia({ csv: '\u0000\u0001<html>Segmentation fault\nERR' })
  const { gpus, problem } = await machine.parts()
  assert.deepEqual(gpus, [])
  assert.match(problem ?? '', /^nvidia-smi printed what cannot be read: <html>Segmentation fault$/)
})

test('a tool that floods is stopped', async context => {
  const { machine, nvidia } = open(context)
  nvidia({ run: 'yes rubbish' })
  assert.equal((await machine.parts()).problem, 'nvidia-smi printed too much')
})

test('a tool that hangs is killed with its children, and is not waited for again', async context => {
  const { folder, machine, nvidia, later } = open(context, { toolMs: 1_000 })
  nvidia({ csv: CARD(0, 'NVIDIA L4', 23034) })
  await machine.parts()
  nvidia({ run: `sleep 1000 & echo $! > ${folder}/pid; wait` })
  const { gpus, problem } = await later()
  assert.deepEqual([gpus.length, problem], [1, 'nvidia-smi did not end within 1 s'])
  const pid = readFileSync(join(folder, 'pid'), 'utf8').trim()
  for (let tries = 0; tries < 100 && existsSync(`/proc/${pid}`); tries += 1) {
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0]
    if (state === 'Z') break
    await new Promise<void>(resolve => void systemClock.after(10, resolve))
    assert.ok(tries < 99, 'what it started still runs')
  }
})

test('the variable that CUDA reads limits which cards are given to workers', async context => {
  const csv = [0, 1, 2].map(index => CARD(index, 'NVIDIA L4', 23034)).join('\n')
  for (const [visible, expected] of [
    ['0,2', [0, 2]],
    ['GPU-1', [1]],
    ['', []],
    ['-1', []],
  ] as const) {
    const { machine, nvidia } = open(context, { env: { CUDA_VISIBLE_DEVICES: visible } })
    nvidia({ csv })
    assert.deepEqual(
      (await machine.parts()).gpus.map(({ index }) => index),
      expected,
    )
  }
})

test('cards of AMD are read from amd-smi, in both of its forms, or from rocm-smi', async context => {
  const card = {
    gpu: 0,
    asic: { market_name: 'AMD Instinct MI300X' },
    vram: { size: { value: 196592, unit: 'MB' } },
    driver: { name: 'amdgpu', version: '6.7.0' },
  }
  const amd = (rows: string, list: string) =>
    `#!/bin/sh\ncase "$1" in static) echo '${rows}' ;; list) echo '${list}' ;; *) exit 2 ;; esac\n`
  const list = [{ gpu: 0, bdf: '0000:05:00.0', uuid: 'a5ff74a1-0000-1000' }]
  const expected = { index: 0, uuid: 'a5ff74a1-0000-1000', name: 'AMD Instinct MI300X', vendor: 'AMD', memoryGb: 192 }
  for (const text of [JSON.stringify([card]), JSON.stringify({ gpu_data: [card] })]) {
    const { machine, install } = open(context)
    install('amd-smi', amd(text, JSON.stringify(list)))
    const [gpu] = (await machine.parts()).gpus
    assert.deepEqual(gpu, { ...expected, driver: '6.7.0', cuda: null, mig: null, problem: null })
  }
  const rocm = {
    card0: { 'Unique ID': '0x1234', 'VRAM Total Memory (B)': '206141652992', 'Card Series': 'Instinct MI300X OAM' },
    system: { 'Driver version': '6.2.4' },
  }
  const { machine, install, later } = open(context)
  install('rocm-smi', `#!/bin/sh\necho '${JSON.stringify(rocm)}'\n`)
  const { gpus } = await machine.parts()
  assert.deepEqual([gpus[0]?.uuid, gpus[0]?.memoryGb, gpus[0]?.driver], ['GPU-1234', 192, '6.2.4'])
  assert.equal(gpus[0]?.name, 'AMD Instinct MI300X OAM', 'the vendor is told even where the tool leaves it out')
  install('rocm-smi', '#!/bin/sh\necho rubbish\n')
  assert.equal((await later()).problem, 'rocm-smi printed what cannot be read: rubbish')
})

test('the use of cards is measured in the background, of NVIDIA and of AMD, where the tool knows it', async context => {
  const { machine, install, measured } = open(context)
  const amd = {
    gpu: 0,
    asic: { market_name: 'AMD Instinct MI300X' },
    vram: { size: { value: 196592, unit: 'MB' } },
    driver: { version: '6.7.0' },
    usage: { gfx_activity: { value: 42, unit: '%' } },
    mem_usage: { total_vram: { value: 1000, unit: 'MB' }, used_vram: { value: 250, unit: 'MB' } },
  }
  const list = JSON.stringify([{ gpu: 0, uuid: 'amd-0' }])
  install('amd-smi', `#!/bin/sh\ncase "$1" in list) echo '${list}' ;; *) echo '${JSON.stringify([amd])}' ;; esac\n`)
  const uses = ['0, 87, 20480, 23034', '1, [N/A], 11517, 23034', '2, 13, 1, [Not Supported]']
  const cards = [CARD(0, 'NVIDIA L4', 23034), CARD(1, 'NVIDIA L4', 23034), CARD(2, 'NVIDIA L4', 23034)]
  install(
    'nvidia-smi',
    `#!/bin/sh\ncase "$*" in *utilization*) printf '${uses.join('\\n')}\\n' ;; *--query*) printf '${cards.join('\\n')}\\n' ;; esac\n`,
  )
  await machine.parts()
  assert.equal(machine.gpuUse().size, 0, 'nothing is known yet, and nobody waits')
  assert.deepEqual(
    [...(await measured())],
    [
      ['GPU-0aaa', { busy: 87, memory: 89 }],
      ['GPU-1aaa', { busy: null, memory: 50 }],
      ['GPU-2aaa', { busy: 13, memory: null }],
      ['amd-0', { busy: 42, memory: 25 }],
    ],
  )
})

test('the older tool of AMD measures too, and what is no JSON measures nothing', async context => {
  const { machine, install, measured, pass } = open(context)
  const card = { 'Unique ID': '0x1', 'VRAM Total Memory (B)': '2147483648', 'Card Series': 'Radeon RX 7900 XT' }
  const use = { 'GPU use (%)': '7', 'VRAM Total Used Memory (B)': '1073741824' }
  install('rocm-smi', `#!/bin/sh\necho '${JSON.stringify({ card0: { ...card, ...use } })}'\n`)
  await machine.parts()
  assert.deepEqual([...(await measured())], [['GPU-1', { busy: 7, memory: 50 }]])
  pass(USE_KEPT_MS)
  assert.equal(machine.gpuUse().size, 0, 'what was measured when a worker last had a GPU is no use of now')
  assert.deepEqual([...parseNvidiaUse('rubbish')], [])
  assert.throws(() => parseAmdUse('rubbish'))
})

test('a tool that is not in PATH starts no process, which would hold up the server', async context => {
  let started = 0
  const count = () => {
    started += 1
  }
  subscribe('child_process', count)
  context.after(() => unsubscribe('child_process', count))
  const { folder, machine, nvidia } = open(context, { env: { PATH: '/nowhere' } })
  assert.deepEqual((await machine.parts()).gpus, [])
  assert.equal(started, 0)
  const env = { PATH: `${folder}:/usr/bin:/bin` }
  const other = createMachine({ clock: systemClock, notifier: { publish: () => {} }, emit: () => {}, env })
  nvidia({ csv: CARD(0, 'NVIDIA A100 80GB PCIe', 81_920) })
  assert.equal((await other.parts()).gpus.length, 1)
  assert.ok(started > 0)
})
