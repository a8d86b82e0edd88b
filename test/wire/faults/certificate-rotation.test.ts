/** A certificate is renewed again and again while clients call: no client notices. */
import assert from 'node:assert/strict'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:https'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate, trustHere, writePair } from '../../support/certificates.ts'
import { balancedEndpoint, inNode } from '../support/balanced.ts'
import { temporaryFolder } from '../support/cleanup.ts'
import { makeEndpoint, runJob } from '../support/client.ts'
import { secureCall, shownAt } from '../support/https.ts'
import { root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const ROTATIONS = 5

test('a certificate is rotated under load without a failed request, also by way of a pair that is half written', async () => {
  const certificates = Array.from({ length: ROTATIONS + 1 }, () => makeCertificate())
  const trusted = certificates.map(({ cert }) => cert)
  trustHere(trusted.join('\n'))
  // As a volume of Kubernetes has a Secret: links to a folder that is replaced.
  const volume = temporaryFolder()
  const current = join(volume, '..data')
  const rotate = (round: number) => {
    writePair(join(volume, `..${round}`), certificates[round]!)
    symlinkSync(`..${round}`, join(volume, '..new'))
    renameSync(join(volume, '..new'), current)
  }
  rotate(0)
  const server = await startServer({
    args: ['--tls-cert', join(current, 'cert.pem'), '--tls-key', join(current, 'key.pem')],
  })
  const settings = { workersMin: 1, workersMax: 2 }
  const queue = await makeEndpoint(server, { folder: `${root}/examples/hello-node`, settings })
  const balanced = await balancedEndpoint(server, { ...inNode, workers: { min: 1, max: 1 } })
  await runJob(server, queue, {})
  await until('a healthy worker', async () => (await secureCall(server, `/lb/${balanced.id}/`)).status === 200)

  const agent = new Agent({ keepAlive: true, maxSockets: 1, timeout: 0 })
  const answers = { kept: 0, fresh: 0 }
  const wrong: string[] = []
  const keptShow = new Set<string>()
  let over = false
  const calls = [
    (kept: boolean) => secureCall(server, `/v2/${queue}/run`, { body: { input: {} }, ...(kept ? { agent } : {}) }),
    (kept: boolean) => secureCall(server, `/v2/${queue}/runsync`, { body: { input: {} }, ...(kept ? { agent } : {}) }),
    (kept: boolean) => secureCall(server, `/lb/${balanced.id}/seen`, { body: { a: 1 }, ...(kept ? { agent } : {}) }),
  ]
  const client = async (kept: boolean) => {
    for (let n = 0; !over; n += 1) {
      try {
        const { status, text, fingerprint } = await calls[n % calls.length]!(kept)
        if (status !== 200) wrong.push(`${status} ${text}`)
        if (kept) keptShow.add(fingerprint)
        answers[kept ? 'kept' : 'fresh'] += 1
      } catch (error) {
        wrong.push(String(error))
      }
    }
  }
  const clients = [true, true, false, false, false].map(client)
  /** Resolves once clients of both kinds have had answers since. */
  const served = async () => {
    const before = { ...answers }
    await until('answers', () => answers.kept > before.kept + 5 && answers.fresh > before.fresh + 5)
  }

  await served()
  for (let round = 1; round <= ROTATIONS; round += 1) {
    const { fingerprint } = certificates[round]!
    // The certificate without its key comes first, and stays for a while.
    const half = join(volume, '..half')
    mkdirSync(half, { recursive: true })
    writeFileSync(join(half, 'cert.pem'), certificates[round]!.cert)
    writeFileSync(join(half, 'key.pem'), certificates[round - 1]!.key)
    symlinkSync('..half', join(volume, '..new'))
    renameSync(join(volume, '..new'), current)
    server.signal('SIGHUP')
    await until('the half pair to be noticed', () => server.events('tls.problem').length === round)
    assert.equal(await shownAt(server.port, trusted), certificates[round - 1]!.fingerprint)
    await served()
    rotate(round)
    // Every other change happens without a signal to the server.
    if (round % 2 === 0) server.signal('SIGHUP')
    await until('the new pair', () => server.events('tls.reloaded').some(event => event.fingerprint === fingerprint))
    assert.equal(await shownAt(server.port, trusted), fingerprint)
    await served()
  }
  over = true
  await Promise.all(clients)
  assert.deepEqual(wrong, [])
  assert.deepEqual([...keptShow], [certificates[0]!.fingerprint], 'one connection was kept all the time')
  assert.equal(server.events('tls.reloaded').length, ROTATIONS)
  assert.equal((await server.stop()).code, 0)
})
