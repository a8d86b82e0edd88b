import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { platform, tmpdir, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { availableShare } from '../../src/core/hardware/machine-use.ts'
import { readMemory } from '../../src/system/hardware/memory.ts'

const MB = 1024 * 1024
const MEMINFO =
  'MemTotal:       1024000 kB\nMemFree:          10000 kB\nMemAvailable:    512000 kB\nActive(file):  1 kB\n'
const machine = { totalBytes: 1000 * MB, availableBytes: 500 * MB }

test('memory is that of the machine where no control group limits it', context => {
  assert.deepEqual(readMemory(makeRoot(context, { 'proc/meminfo': MEMINFO })), machine)
  const unlimited = { 'memory.max': 'max', 'memory.current': String(400 * MB) }
  assert.deepEqual(
    readMemory(makeRoot(context, { 'proc/meminfo': MEMINFO, ...groupFiles('sys/fs/cgroup/a', unlimited) })),
    machine,
  )
})

test('memory is that of the control group of which the smaller share is left, around this process too', context => {
  const files = {
    'proc/meminfo': MEMINFO,
    'proc/self/cgroup': '0::/a/b\n',
    ...groupFiles('sys/fs/cgroup/a/b', { 'memory.max': 'max', 'memory.current': '5' }),
    ...groupFiles('sys/fs/cgroup/a', {
      'memory.max': String(100 * MB),
      'memory.current': String(90 * MB),
      'memory.stat': `anon 7\ninactive_file ${5 * MB}\n`,
    }),
  }
  assert.deepEqual(readMemory(makeRoot(context, files)), { totalBytes: 100 * MB, availableBytes: 15 * MB })
})

test('memory is that of a control group of version 1, whose path is that outside of a container', context => {
  const files = {
    'proc/meminfo': MEMINFO,
    'proc/self/cgroup': '5:cpuset:/docker/c\n4:memory:/docker/c\n0::/\n',
    ...groupFiles('sys/fs/cgroup/memory', {
      'memory.limit_in_bytes': String(200 * MB),
      'memory.usage_in_bytes': String(150 * MB),
      'memory.stat': `inactive_file 1\ntotal_inactive_file ${10 * MB}\n`,
    }),
  }
  assert.deepEqual(readMemory(makeRoot(context, files)), { totalBytes: 200 * MB, availableBytes: 60 * MB })
})

test('a control group that may have more than the machine is no limit', context => {
  const files = {
    'proc/meminfo': MEMINFO,
    'proc/self/cgroup': '4:memory:/\n',
    ...groupFiles('sys/fs/cgroup/memory', {
      'memory.limit_in_bytes': '9223372036854771712',
      'memory.usage_in_bytes': String(999 * MB),
    }),
  }
  assert.deepEqual(readMemory(makeRoot(context, files)), machine)
})

test('where the system does not show it, nothing is said of memory', context => {
  assert.equal(readMemory(makeRoot(context, {})), null)
  assert.equal(readMemory(makeRoot(context, { 'proc/meminfo': 'MemTotal: 5 kB\n' })), null)
})

test('the memory of this machine is read', { skip: platform() !== 'linux' }, () => {
  const memory = readMemory()
  assert.ok(memory !== null && memory.totalBytes <= totalmem())
  const share = availableShare(memory)
  assert.ok(share > 0 && share <= 1, String(share))
})

test('more than all and less than nothing of memory are no shares', () => {
  assert.deepEqual(
    [availableShare({ totalBytes: 5, availableBytes: 6 }), availableShare({ totalBytes: 5, availableBytes: -1 })],
    [1, 0],
  )
})

function groupFiles(folder: string, files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]))
}

function makeRoot(context: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'runyard-memory-'))
  context.after(() => rmSync(root, { recursive: true }))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}
