/** REST and GraphQL over plain HTTP: forms of authentication, shapes of answers, and what is refused. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ask, changeEndpoint, graphql, makeEndpoint, submit, whenFinal, whenStatus } from '../support/client.ts'
import { root, type Server, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const folder = `${root}/examples/hello-node`

let server: Server

before(async () => {
  server = await startServer()
})

const post = (
  query: string,
  more: { path?: string; headers?: Record<string, string | null>; variables?: object } = {},
) =>
  ask(server, more.path ?? '/graphql', {
    body: { query, ...(more.variables ? { variables: more.variables } : {}) },
    ...(more.headers ? { headers: more.headers } : {}),
  })

describe('REST', () => {
  test('an endpoint is shown whole, with the rate windows in the headers', async () => {
    const id = await makeEndpoint(server, {
      folder,
      env: { A: 'template', B: 'template' },
      settings: { env: [{ key: 'B', value: 'own' }] },
    })
    const answer = await ask(server, `/v2/serverless/${id}`)
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
    const { createdAt, name, requestUrls, ...rest } = answer.json
    assert.equal(new Date(createdAt).toISOString(), createdAt)
    assert.match(name, /^wire-/)
    assert.deepEqual(rest, {
      id,
      type: 'QUEUE',
      cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }],
      workers: { min: 0, max: 3, idleTimeout: 10 },
      scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
      dataCenterIds: [],
      networkVolumes: [],
      modelReferences: [],
      corsOrigins: [],
      timeout: 600_000,
      flashboot: 'OFF',
      priority: 'normal',
      preemptible: false,
      args: '',
      disk: 1,
      env: { A: 'template', B: 'own' },
      image: `dir:${folder}`,
      ports: [],
      registry: null,
    })
    const base = `${server.url}/v2/${id}`
    assert.deepEqual(requestUrls, {
      run: `${base}/run`,
      runSync: `${base}/runsync`,
      status: `${base}/status/{job_id}`,
      stream: `${base}/stream/{job_id}`,
      cancel: `${base}/cancel/{job_id}`,
      retry: `${base}/retry/{job_id}`,
      purgeQueue: `${base}/purge-queue`,
      health: `${base}/health`,
    })
    const remaining = /^"minute";r=(\d+);t=\d+, "hour";r=\d+;t=\d+, "day";r=\d+;t=\d+$/
    assert.match(answer.headers.get('ratelimit') ?? '', remaining)
    assert.equal(
      answer.headers.get('ratelimit-policy'),
      '"minute";q=1200;w=60, "hour";q=36000;w=3600, "day";q=500000;w=86400',
    )
    const again = await ask(server, `/v2/serverless/${id}`)
    const left = (text: string | null) => Number(remaining.exec(text ?? '')?.[1])
    assert.equal(left(again.headers.get('ratelimit')), left(answer.headers.get('ratelimit')) - 1)
  })

  test('a GPU endpoint and a load-balancing one show what belongs to their kind', async () => {
    const gpu = await makeEndpoint(server, {
      folder,
      settings: {
        instanceIds: [],
        gpuIds: 'ADA_24,AMPERE_24',
        gpuCount: 2,
        scalerType: 'REQUEST_COUNT',
        scalerValue: 3,
      },
    })
    const shown = (await ask(server, `/v2/serverless/${gpu}`)).json
    assert.deepEqual(shown.gpu, {
      pools: ['ADA_24', 'AMPERE_24'],
      count: 2,
      allowedCudaVersions: [],
      minCudaVersion: null,
    })
    assert.deepEqual(
      [shown.scaling, shown.workers],
      [
        { type: 'REQUEST_COUNT', requestCount: 3 },
        { min: 0, max: 3 },
      ],
    )
    const balancer = await makeEndpoint(server, { folder, settings: { type: 'LB', workersMax: 0 } })
    const { requestUrls, browserUrl, type } = (await ask(server, `/v2/serverless/${balancer}`)).json
    assert.equal(type, 'LOAD_BALANCER')
    const base = `${server.url}/lb/${balancer}`
    assert.deepEqual(requestUrls, { base, health: `${base}/ping` })
    assert.equal(browserUrl, `http://${balancer}.lb.localhost:${server.port}`)
  })

  const refusals: [what: string, path: string, request: object, status: number, title: string][] = [
    ['no key', '/v2/serverless/a', { headers: { authorization: null } }, 401, 'Unauthorized'],
    ['a key without Bearer', '/v2/serverless/a', { headers: { authorization: 'rpa_x' } }, 401, 'Unauthorized'],
    ['a bad key', '/v2/serverless/a', { headers: { authorization: 'Bearer rpa_x' } }, 401, 'Unauthorized'],
    ['an endpoint that does not exist', '/v2/serverless/nosuch', {}, 404, 'Not Found'],
    ['a path that does not exist', '/v2/pods/p1', {}, 404, 'Not Found'],
    ['a method that it does not take', '/v2/serverless/a', { method: 'PUT' }, 405, 'Method Not Allowed'],
  ]
  for (const [what, path, request, status, title] of refusals) {
    test(`${what} is a problem document with ${status}`, async () => {
      const answer = await ask(server, path, request)
      assert.equal(answer.status, status)
      assert.equal(answer.headers.get('content-type'), 'application/problem+json')
      const requestId = answer.headers.get('x-request-id')
      assert.deepEqual({ ...answer.json, detail: '' }, { title, status, detail: '', requestId })
      assert.ok(answer.json.detail.length > 5)
      assert.equal(answer.headers.has('ratelimit'), status !== 401)
      if (status === 405) assert.equal(answer.headers.get('allow'), 'GET, HEAD, PATCH, DELETE')
    })
  }
})

describe('GraphQL authentication', () => {
  test('the key is taken from the query and from the header in both forms', async () => {
    const anonymous = { authorization: null }
    for (const request of [
      { path: `/graphql?api_key=${server.apiKey}`, headers: anonymous },
      { headers: { authorization: server.apiKey } },
      { headers: { authorization: `Bearer ${server.apiKey}` } },
    ]) {
      const answer = await post('{ myself { id } }', request)
      assert.equal(answer.status, 200)
      assert.equal(typeof answer.json.data.myself.id, 'string')
      assert.equal('errors' in answer.json, false)
    }
  })

  test('an anonymous caller has no account, and may change nothing', async () => {
    const anonymous = { headers: { authorization: null } }
    const query = await post('{ myself { id } }', anonymous)
    assert.deepEqual([query.status, query.json], [200, { data: { myself: null } }])
    const mutation = await post('mutation { deleteEndpoint(id: "x") }', anonymous)
    assert.equal(mutation.status, 401)
    assert.match(mutation.json.errors[0].message, /API key/)
  })

  test('a bad key is 401 with the reason among the errors', async () => {
    for (const request of [
      { headers: { authorization: 'Bearer rpa_x' } },
      { path: '/graphql?api_key=x', headers: { authorization: null } },
    ]) {
      const answer = await post('{ myself { id } }', request)
      assert.equal(answer.status, 401)
      assert.match(answer.json.errors[0].message, /API key/)
    }
  })
})

describe('GraphQL operations', () => {
  test('inline literals, with an enum and a blank before a colon, make a template and an endpoint', async () => {
    const template =
      await post(`mutation { saveTemplate(input: { name: "inline", imageName: "dir:${folder}", dockerArgs: "",
      containerDiskInGb: 10, volumeInGb: 0, ports: "", env: [{ key: "K", value: "V" }], isServerless: true,
      containerRegistryAuthId : "", startSsh: true, isPublic: false, readme: "" }) {
      id name imageName dockerArgs containerDiskInGb volumeInGb volumeMountPath ports env { key value } isServerless } }`)
    assert.equal(template.status, 200)
    const { id, ...fields } = template.json.data.saveTemplate
    assert.deepEqual(fields, {
      name: 'inline',
      imageName: `dir:${folder}`,
      dockerArgs: '',
      containerDiskInGb: 10,
      volumeInGb: 0,
      volumeMountPath: '/workspace',
      ports: '',
      env: [{ key: 'K', value: 'V' }],
      isServerless: true,
    })
    const endpoint =
      await post(`mutation { saveEndpoint(input: { flashBootType: FLASHBOOT, name: "inline", templateId: "${id}",
      gpuIds: "AMPERE_16", networkVolumeId: "", locations: "", idleTimeout: 5, scalerType: "QUEUE_DELAY", scalerValue: 4,
      workersMin: 0, workersMax: 3, gpuCount: 1 }) {
      name templateId gpuIds networkVolumeId locations idleTimeout scalerType scalerValue workersMin workersMax
      allowedCudaVersions gpuCount flashBootType } }`)
    assert.deepEqual(endpoint.json, {
      data: {
        saveEndpoint: {
          name: 'inline',
          templateId: id,
          gpuIds: 'AMPERE_16',
          networkVolumeId: null,
          locations: '',
          idleTimeout: 5,
          scalerType: 'QUEUE_DELAY',
          scalerValue: 4,
          workersMin: 0,
          workersMax: 3,
          allowedCudaVersions: '',
          gpuCount: 1,
          flashBootType: 'FLASHBOOT',
        },
      },
    })
  })

  test('an update keeps what it leaves out', async () => {
    const settings = {
      idleTimeout: 77,
      scalerType: 'REQUEST_COUNT',
      scalerValue: 9,
      workersMax: 5,
      env: [{ key: 'A', value: '1' }],
    }
    const id = await makeEndpoint(server, {
      folder,
      settings: { ...settings, executionTimeoutMs: 70_000, locations: 'US' },
    })
    await changeEndpoint(server, id, { workersMax: 4 })
    const query = `query ($id: String!) { myself { endpoint(id: $id) {
      idleTimeout scalerType scalerValue workersMin workersMax executionTimeoutMs locations instanceIds env { key value } } } }`
    assert.deepEqual((await graphql(server, query, { id })).myself.endpoint, {
      ...settings,
      workersMin: 0,
      workersMax: 4,
      executionTimeoutMs: 70_000,
      locations: 'US',
      instanceIds: ['cpu3g-2-8'],
    })
  })

  test('a template update keeps what it leaves out and replaces the workers of its endpoints', async () => {
    const id = await makeEndpoint(server, { folder, env: { A: '1' }, settings: { workersMax: 1, idleTimeout: 3600 } })
    const first = await whenFinal(server, id, await submit(server, id, {}))
    const get =
      'query ($id: String!) { myself { endpoint(id: $id) { version template { id env { key value } containerDiskInGb } } } }'
    const { template, version } = (await graphql(server, get, { id })).myself.endpoint
    const save = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { env { key value } } }'
    await graphql(server, save, { input: { id: template.id, containerDiskInGb: 7 } })
    const after = (await graphql(server, get, { id })).myself.endpoint
    assert.deepEqual(after.template, { ...template, containerDiskInGb: 7 })
    assert.equal(after.version, version + 1)
    // A job may still run on the old worker until it makes room.
    for (let workerId = first.workerId; workerId === first.workerId; ) {
      const second = await whenFinal(server, id, await submit(server, id, {}))
      assert.equal(second.status, 'COMPLETED')
      workerId = second.workerId
    }
  })

  test('all mistakes of an input are reported in one message', async () => {
    const save = 'mutation ($input: EndpointInput!) { saveEndpoint(input: $input) { id } }'
    const missing = await post(save, { variables: { input: { name: 'x' } } })
    assert.equal(missing.status, 200)
    assert.equal(
      missing.json.errors[0].message,
      'templateId (or template) is needed; gpuIds (or instanceIds) is needed',
    )
    const input = {
      name: '',
      templateId: 'nosuch',
      gpuIds: 'NOPE',
      workersMin: 5,
      workersMax: 2,
      idleTimeout: 0,
      scalerValue: 0.1,
    }
    const { message } = (await post(save, { variables: { input } })).json.errors[0]
    for (const part of [
      'name must',
      'workersMin (5) must not exceed',
      'idleTimeout must',
      'scalerValue must',
      'NOPE',
      'template nosuch not found',
    ]) {
      assert.ok(message.includes(part), `${part} in: ${message}`)
    }
  })

  test('a mistake in the document is an error with a message, whatever the status', async () => {
    for (const query of ['mutation {', '{ nosuch }', 'mutation { saveTemplate(input: { name: "a"b" }) { id } }', '']) {
      const answer = await post(query)
      assert.ok([200, 400].includes(answer.status))
      assert.equal(typeof answer.json.errors[0].message, 'string')
    }
    assert.match((await ask(server, '/graphql', { body: '{' })).json.errors[0].message, /./)
  })

  test('a template name that exists is refused', async () => {
    const save = 'mutation ($input: SaveTemplateInput) { saveTemplate(input: $input) { id } }'
    const input = { name: 'twice', imageName: 'a/b:1', containerDiskInGb: 1, volumeInGb: 0, isServerless: true }
    await graphql(server, save, { input })
    await assert.rejects(graphql(server, save, { input }), /a template named 'twice' already exists/)
  })

  test('an endpoint can be deleted only when its min and max are 0, a template only when nothing uses it', async () => {
    const id = await makeEndpoint(server, { folder, settings: { workersMax: 1, idleTimeout: 3600 } })
    const running = await submit(server, id, { sleepMs: 60_000 })
    const { workerId } = await whenStatus(server, id, running, ['IN_PROGRESS'])
    const query = 'query ($id: String!) { myself { endpoint(id: $id) { template { name } } } }'
    const { name } = (await graphql(server, query, { id })).myself.endpoint.template
    const deleteEndpoint = 'mutation ($id: String!) { deleteEndpoint(id: $id) }'
    const deleteTemplate = 'mutation ($name: String) { deleteTemplate(templateName: $name) }'
    await assert.rejects(graphql(server, deleteEndpoint, { id }), /only when workersMin and workersMax are 0/)
    await assert.rejects(graphql(server, deleteTemplate, { name }), /is in use by an endpoint/)
    await changeEndpoint(server, id, { workersMin: 0, workersMax: 0 })
    assert.deepEqual((await post(deleteEndpoint, { variables: { id } })).json, { data: { deleteEndpoint: null } })
    assert.deepEqual((await post(deleteTemplate, { variables: { name } })).json, { data: { deleteTemplate: null } })
    for (const path of [`/v2/${id}/health`, `/v2/${id}/status/${running}`, `/v2/serverless/${id}`]) {
      assert.equal((await ask(server, path)).status, 404)
    }
    // The jobs of a deleted endpoint are removed after the response.
    const cancelled = () => server.events('job.moved').find(({ jobId, to }) => jobId === running && to === 'CANCELLED')
    await until('the end of the running job', cancelled)
    assert.ok(server.events('worker.moved').some(event => event.workerId === workerId && event.to === 'STOPPING'))
    await assert.rejects(graphql(server, deleteEndpoint, { id }), /not found/)
    await assert.rejects(graphql(server, deleteTemplate, { name }), /not found/)
  })

  test('a secret is created without showing its value, once for a name, and deleted', async () => {
    const create = 'mutation ($input: SecretCreateInput!) { secretCreate(input: $input) { id name description } }'
    const { secretCreate } = await graphql(server, create, { input: { name: 'TOKEN', value: 'hush', description: '' } })
    assert.equal(secretCreate.name, 'TOKEN')
    const again = await post('mutation { secretCreate(input: { name: "TOKEN", value: "x" }) { id } }')
    assert.match(again.json.errors[0].message, /a secret named 'TOKEN' already exists/)
    const listed = await graphql(server, '{ myself { secrets { id name } } }')
    assert.deepEqual(listed.myself.secrets, [{ id: secretCreate.id, name: 'TOKEN' }])
    await assert.rejects(graphql(server, '{ myself { secrets { value } } }'), /Cannot query field/)
    const gone = await post('mutation ($id: ID!) { secretDelete(id: $id) }', { variables: { id: secretCreate.id } })
    assert.deepEqual(gone.json, { data: { secretDelete: null } })
    assert.deepEqual((await graphql(server, '{ myself { secrets { id } } }')).myself.secrets, [])
  })

  test('the query of the documentation lists endpoints, their workers and no discount', async () => {
    const id = await makeEndpoint(server, { folder, settings: { workersMin: 1, idleTimeout: 3600 } })
    await whenFinal(server, id, await submit(server, id, {}))
    const { myself } = await graphql(
      server,
      `query { myself { endpoints { gpuIds id idleTimeout locations name networkVolumeId pods { desiredStatus } scalerType
       scalerValue templateId workersMax workersMin } serverlessDiscount { discountFactor type expirationDate } } }`,
    )
    assert.equal(myself.serverlessDiscount, null)
    const listed = myself.endpoints.find((endpoint: { id: string }) => endpoint.id === id)
    assert.deepEqual(listed.pods, [{ desiredStatus: 'RUNNING' }])
  })
})
