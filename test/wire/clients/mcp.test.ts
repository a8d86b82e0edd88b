/**
 * RunPod's MCP server against a real server: the tools that an assistant has, from a
 * template to a job and to the end.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { whenFinal } from '../support/client.ts'
import { mcpServer } from '../support/mcp.ts'
import { fixture, type Server, startServer } from '../support/server.ts'
import { imageFor } from '../support/workers.ts'

interface Reply {
  readonly id: number
  readonly result: { readonly content: readonly { readonly text: string }[]; readonly isError?: boolean }
}

/** The tools of an MCP server that speaks through its standard streams. */
class Tools {
  readonly #send: (message: object) => void
  readonly #waiting = new Map<number, (reply: Reply) => void>()
  #count = 0

  constructor(program: string, { url, apiKey }: Server) {
    const { PATH = '', HOME = '' } = process.env
    const graphql = { RUNPOD_PUBLIC_GRAPHQL_URL: `${url}/graphql`, RUNPOD_AUTHED_GRAPHQL_URL: `${url}/graphql` }
    const addresses = { RUNPOD_API_BASE_URL: url, RUNPOD_SERVERLESS_API_URL: `${url}/v2`, ...graphql }
    const child = spawn(process.execPath, [program], {
      env: { PATH, HOME, RUNPOD_API_KEY: apiKey, ...addresses },
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    atEnd(() => void child.kill('SIGKILL'))
    this.#send = message => void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    createInterface({ input: child.stdout }).on('line', line => {
      const reply = JSON.parse(line) as Reply
      this.#waiting.get(reply.id)?.(reply)
    })
  }

  async open(): Promise<void> {
    const clientInfo = { name: 'test', version: '1' }
    await this.#call('initialize', { protocolVersion: '2024-11-05', capabilities: {}, clientInfo })
    this.#send({ method: 'notifications/initialized' })
  }

  /** Result of a tool; fails if the tool reports an error. */
  // biome-ignore lint/suspicious/noExplicitAny: answers are compared with what the test expects
  async use(name: string, args: object = {}): Promise<any> {
    const { isError, text } = await this.#use(name, args)
    assert.notEqual(isError, true, `${name}: ${text}`)
    return text === '' ? null : JSON.parse(text)
  }

  /** The error that a tool reports; fails if it reports none. */
  async refused(name: string, args: object): Promise<string> {
    const { isError, text } = await this.#use(name, args)
    assert.equal(isError, true, `${name}: ${text}`)
    return text
  }

  async #use(name: string, args: object) {
    const { result } = await this.#call('tools/call', { name, arguments: args })
    return { isError: result.isError, text: result.content.map(part => part.text).join('') }
  }

  #call(method: string, params: object): Promise<Reply> {
    const id = ++this.#count
    return new Promise(resolve => {
      this.#waiting.set(id, resolve)
      this.#send({ id, method, params })
    })
  }
}

describe("RunPod's MCP server", { skip: mcpServer.skip }, () => {
  test('its tools make a template and an endpoint, run a job, look at it all, change it and delete it', async () => {
    const server = await startServer()
    const tools = new Tools(mcpServer.program, server)
    await tools.open()
    const image = await imageFor(fixture('node-everyday'))
    const template = await tools.use('create-template', { body: { name: 't', image, serverless: true } })
    const scaling = { type: 'QUEUE_DELAY', queueDelay: 4 }
    const compute = { cpu: [{ id: 'cpu3g', vcpuCount: 2 }] }
    const body = { name: 'e', type: 'QUEUE', templateId: template.id, scaling, ...compute }
    const { id } = await tools.use('create-endpoint', { body })
    const job = await tools.use('run-endpoint', { endpointId: id, input: { name: 'Ada' } })
    await whenFinal(server, id, job.id)
    assert.equal((await tools.use('get-job-status', { endpointId: id, jobId: job.id })).status, 'COMPLETED')
    assert.equal((await tools.use('endpoint-health', { endpointId: id })).jobs.completed, 1)
    assert.equal((await tools.use('list-endpoint-workers', { id })).workers.length, 1)
    assert.equal((await tools.use('list-endpoint-releases', { id })).releases.length, 1)
    const changed = await tools.use('update-endpoint', { id, body: { workers: { max: 0 } } })
    assert.equal(changed.workers.max, 0)
    assert.equal((await tools.use('list-endpoints')).items.length, 1)
    for (const name of ['list-gpu-types', 'list-cpu-types', 'list-data-centers', 'list-registries', 'get-ssh-keys']) {
      await tools.use(name)
    }
    for (const name of ['list-pods', 'list-clusters', 'list-delegations', 'list-hub-repos', 'list-public-endpoints']) {
      assert.deepEqual(Object.values(await tools.use(name)).find(Array.isArray), [], name)
    }
    for (const kind of ['billing', 'pod-billing', 'cluster-billing', 'network-volume-billing', 'endpoint-billing']) {
      assert.equal((await tools.use(`list-${kind}`, { lastN: 2 })).metadata.query.bucketSize, 'day', kind)
    }
    assert.deepEqual((await tools.use('list-endpoint-builds', { id })).builds, [])
    const pods = /Runyard runs serverless endpoints and tasks of apps \(@app\.task\), and has no other pods/
    const clusters = /Runyard runs serverless endpoints, and has no clusters/
    const delegations = /Runyard takes a user name and a password for a registry, and no delegation/
    const gpu = { id: 'NVIDIA L4', count: 1 }
    for (const [name, args, sentence] of [
      ['create-pod', { body: { name: 'p', image, startSsh: true, gpu } }, pods],
      ['get-pod', { id: 'p1' }, /pod p1 not found/],
      ['update-pod', { id: 'p1', body: { name: 'q' } }, pods],
      ['delete-pod', { id: 'p1' }, /pod p1 not found/],
      ['pod-action', { id: 'p1', body: { action: 'stop' } }, pods],
      ['stream-pod-logs', { podId: 'p1' }, /pod p1 not found/],
      ['create-cluster', { body: { name: 'c', image, gpu, podCount: 2 } }, clusters],
      ['get-cluster', { id: 'c1' }, clusters],
      ['update-cluster', { id: 'c1', body: { name: 'd' } }, clusters],
      ['delete-cluster', { id: 'c1' }, clusters],
      ['list-cluster-pods', { id: 'c1' }, clusters],
      ['create-delegation', { body: { name: 'd', awsRoleArn: 'arn' } }, delegations],
      ['revoke-delegation', { id: 'd1' }, delegations],
      ['get-endpoint-build', { id, buildId: 'b1' }, /Runyard runs images, and builds none/],
      ['deploy-hub-repo', { repo: 'a/b', name: 'x' }, /No Hub listing found/],
    ] as const)
      assert.match(await tools.refused(name, args), sentence, name)
    await tools.use('get-capacity')
    await tools.use('delete-endpoint', { id })
    await tools.use('delete-template', { id: template.id })
    assert.deepEqual((await tools.use('list-templates')).templates, [])
  })
})
