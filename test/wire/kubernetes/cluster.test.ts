/**
 * The cluster of the tests itself: it takes pods, its programs can be killed, and it leaves nothing
 * behind, however its test ends.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { noKubernetes } from '../../support/kubernetes.ts'
import { patient } from '../../support/patience.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Runs until it is killed, with a pod that runs. */
const FORGETFUL = `
const { openCluster, nodeImage } = await import('${join(root, 'test/support/kubernetes.ts')}')
const cluster = await openCluster()
const pod = { metadata: { name: 'a' }, spec: { containers: [{ name: 'a', image: nodeImage, command: ['sleep', '1000'] }] } }
const { status } = await cluster.api('POST', '/api/v1/namespaces/default/pods', pod)
for (;;) {
  const { json } = await cluster.api('GET', '/api/v1/namespaces/default/pods/a')
  if (json.status?.phase === 'Running') break
  await new Promise(resolve => setTimeout(resolve, 100))
}
console.log(JSON.stringify({ folder: cluster.folder, host: cluster.hostAddress }))
setInterval(() => {}, 1000)`

describe('a cluster of the tests', { skip: noKubernetes, timeout: patient(280_000) }, () => {
  test('ends with the process that started it, also when that is killed, and leaves nothing but files', async () => {
    const child = spawn(join(root, 'bin/node'), ['--input-type=module', '-e', FORGETFUL], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let printed = ''
    child.stdout.on('data', block => (printed += block))
    await until('the cluster to run its pod', () => child.exitCode !== null || printed.includes('\n'), 280_000)
    const { folder, host } = JSON.parse(printed) as { folder: string; host: string }
    assert.notEqual(processesOf(folder).length, 0)
    child.kill('SIGKILL')
    await until('its programs to end', () => processesOf(folder).length === 0)
    await until('its link to be gone', () => !addresses().includes(host))
    assert.doesNotMatch(readFileSync('/proc/self/mounts', 'utf8'), new RegExp(folder))
    assert.ok(existsSync(folder), 'the next cluster removes it')
  })
})

/** The processes whose commands name a folder. */
function processesOf(folder: string): string[] {
  return globSync('/proc/[0-9]*/cmdline').filter(path => {
    try {
      return readFileSync(path, 'utf8').includes(folder)
    } catch {
      return false
    }
  })
}

function addresses(): string[] {
  return Object.values(networkInterfaces()).flatMap(all => (all ?? []).map(({ address }) => address))
}
