/** A thread that reads HTTP: see {@link HttpThreads}. */
import { createHmac, randomBytes } from 'node:crypto'
import { receiveMessageOnPort, workerData } from 'node:worker_threads'
import { isWithin } from '../../core/workers/container-reach.ts'
import { addressList } from '../../gateway/entrance/forwarded.ts'
import { ThreadGateway } from '../../gateway/threads/thread-gateway.ts'
import { CallSender } from '../../server/call-messages.ts'
import { sharedTotals } from '../../server/connection-totals.ts'
import { type Listener, listen } from '../../server/listener.ts'
import { RequestPasser } from '../../server/passed-requests.ts'
import { sharedAddresses } from '../../server/shares.ts'
import { systemClock } from '../../system/clock.ts'
import type { FromHttpThread, HttpThreadData, ToHttpThread } from './http-threads.ts'

const data = workerData as HttpThreadData
const { port, rules, bodyBytes, passing, hosts, mount } = data
const post = (message: FromHttpThread) => port.postMessage(message)
const salt = randomBytes(32)
const gateway = new ThreadGateway({
  clock: systemClock,
  hash: text => createHmac('sha256', salt).update(text).digest('base64'),
  send: batch => post({ kind: 'batch', batch }),
  rules,
  bodyBytes,
})
const calls = new CallSender(systemClock, packet => post({ kind: 'calls', packet }))
const passer = new RequestPasser(passing.file, passing.secret)
const { promise: opening, resolve: open } = Promise.withResolvers<void>()
let subnets: readonly string[] = []
let listener: Listener | null = null

const sent = new Int32Array(data.sent)
let received = 0

function receive(message: ToHttpThread): void {
  received = (received + 1) | 0
  if (message.kind === 'batch') gateway.receive(message.batch)
  else if (message.kind === 'answer') open()
  else if (message.kind === 'answers') calls.receive(message.packet)
  else if (message.kind === 'containers') ({ subnets } = message)
  else void close(message.graceMs)
}

/** Takes all messages that were sent until now. */
function catchUp(): void {
  while (Atomics.load(sent, 0) !== received) {
    const next = receiveMessageOnPort(port) as { readonly message: ToHttpThread } | undefined
    if (next === undefined) break
    receive(next.message)
  }
}

async function close(graceMs: number): Promise<void> {
  await listener?.close(graceMs)
  passer.close()
  gateway.flush()
  post({ kind: 'closed' })
}

port.on('message', receive)
const findEndpoint = (name: string) => {
  catchUp()
  return gateway.findEndpoint(name)
}
const surfaces = () => Promise.reject(new Error('requests for surfaces are passed on'))
try {
  listener = await listen(surfaces, {
    ...data.listen,
    reusesPort: true,
    maxConnections: data.maxConnections,
    limits: { ...data.limits, isShared: sharedAddresses(rules.trustedProxies) },
    totals: sharedTotals(data.totals, data.thread),
    onFull: () => post({ kind: 'full' }),
    crowded: () => post({ kind: 'crowded' }),
    refuses: address => {
      catchUp()
      return address !== undefined && isWithin(address, subnets)
    },
    hosts: { ...hosts, also: name => findEndpoint(name) !== null },
    trusts: addressList(rules.trustedProxies),
    consoleHost: data.consoleHost,
    mount: { ...mount, entrance: gateway, findEndpoint },
    opening,
    passer,
    calls,
    standIn: () => {
      catchUp()
      return gateway.isActing ? null : passer
    },
  })
  post({ kind: 'listening', port: listener.port })
} catch (error) {
  const { message, code } = error as NodeJS.ErrnoException
  post({ kind: 'failed', message, code })
}
