/** runpodctl: up to 2.7 over REST version 1, later over version 2; it creates endpoints through GraphQL. */
import { job } from './jobs.ts'
import type { Script, Step } from './scripts.ts'

const SAVE_ENDPOINT = `
  mutation SaveEndpoint($input: EndpointInput!) {
    saveEndpoint(input: $input) {
      id name templateId gpuIds instanceIds computeType networkVolumeId networkVolumeIds { networkVolumeId dataCenterId }
      locations idleTimeout scalerType scalerValue workersMin workersMax gpuCount minCudaVersion executionTimeoutMs
      flashBootType modelReferences
    }
  }`

const accept = { accept: 'application/json', 'content-type': 'application/json' }

function create(name: string, settings: object): Step {
  const input = { name, templateId: '<template>', gpuCount: 1, workersMin: 0, workersMax: 1, ...settings }
  return {
    what: 'creates an endpoint',
    method: 'POST',
    path: '/graphql',
    body: { query: SAVE_ENDPOINT, variables: { input } },
    shows: { 'data.saveEndpoint.name': name, 'data.saveEndpoint.workersMax': 1 },
    keeps: { endpoint: 'data.saveEndpoint.id' },
  }
}

const NO_PODS = 'Runyard runs serverless endpoints and tasks of apps (@app.task), and has no other pods'

/** Commands of pods at a path of either version, each with its sentence. @param place of the sentence */
function pods(path: string, list: string, place: string): readonly Step[] {
  const refused = (what: string, method: Step['method'], below: string, status: number, sentence: string): Step => ({
    what: `is told that it ${what} no pod`,
    method,
    path: `${path}${below}`,
    status,
    ...(method === 'POST' && { body: {} }),
    shows: { [place]: sentence },
  })
  return [
    { what: 'lists pods', method: 'GET', path, shows: { [list]: 0 } },
    refused('makes', 'POST', '', 405, `this path takes GET, HEAD, not POST: ${NO_PODS}`),
    refused('shows', 'GET', '/p1', 404, 'pod p1 not found'),
    refused('deletes', 'DELETE', '/p1', 404, 'pod p1 not found'),
  ]
}

export const RUNPODCTL_2_7: Script = {
  tool: 'runpodctl 2.7',
  headers: { ...accept, 'user-agent': 'runpod-cli/2.7.2 (linux; amd64)' },
  steps: [
    {
      what: 'creates a template',
      method: 'POST',
      path: '/v1/templates',
      status: 201,
      body: {
        name: 'ctl27',
        imageName: '<image>',
        isServerless: true,
        containerDiskInGb: 20,
        volumeInGb: 0,
        ports: ['8888/http', '22/tcp'],
        env: { A: '1' },
        readme: '',
        volumeMountPath: '/workspace',
      },
      shows: { name: 'ctl27', isServerless: true, containerDiskInGb: 20, ports: ['8888/http', '22/tcp'], 'env.A': '1' },
      keeps: { template: 'id' },
    },
    {
      what: 'lists templates',
      method: 'GET',
      path: '/v1/templates?includeEndpointBoundTemplates=false&includePublicTemplates=false&includeRunpodTemplates=false',
      shows: { '[0].name': 'ctl27' },
    },
    { what: 'shows a template', method: 'GET', path: '/v1/templates/<template>', shows: { id: '<template>' } },
    create('ctl27', { gpuIds: 'AMPERE_16' }),
    {
      what: 'lists endpoints with all that belongs to them',
      method: 'GET',
      path: '/v1/endpoints?includeTemplate=true&includeWorkers=true',
      shows: { '[0].id': '<endpoint>', '[0].template.name': 'ctl27', '[0].workers': [] },
    },
    ...job('Ada'),
    {
      what: 'shows an endpoint',
      method: 'GET',
      path: '/v1/endpoints/<endpoint>?includeTemplate=true',
      shows: { scalerType: 'QUEUE_DELAY', scalerValue: 4, 'template.imageName': '<image>' },
    },
    {
      what: 'changes an endpoint',
      method: 'PATCH',
      path: '/v1/endpoints/<endpoint>',
      body: { name: 'ctl27 renamed', workersMax: 2, idleTimeout: 30, scalerType: 'REQUEST_COUNT', scalerValue: 2 },
      shows: { name: 'ctl27 renamed', workersMax: 2, idleTimeout: 30, scalerType: 'REQUEST_COUNT', scalerValue: 2 },
    },
    {
      what: 'turns FlashBoot off',
      method: 'PATCH',
      path: '/v1/endpoints/<endpoint>',
      body: { flashboot: false },
      shows: { flashboot: false },
    },
    {
      what: 'changes a template',
      method: 'PATCH',
      path: '/v1/templates/<template>',
      body: { env: { A: '2' }, readme: 'more' },
      shows: { 'env.A': '2', readme: 'more', name: 'ctl27' },
    },
    ...job('Grace'),
    {
      what: 'saves a credential',
      method: 'POST',
      path: '/v1/containerregistryauth',
      status: 201,
      body: { name: 'hub', username: 'me', password: 'secret' },
      keeps: { registry: 'id' },
    },
    { what: 'lists credentials', method: 'GET', path: '/v1/containerregistryauth', shows: { '[0].name': 'hub' } },
    { what: 'deletes a credential', method: 'DELETE', path: '/v1/containerregistryauth/<registry>', status: 204 },
    {
      what: 'makes a volume',
      method: 'POST',
      path: '/v1/networkvolumes',
      status: 201,
      body: { name: 'data', size: 10, dataCenterId: 'EU-RO-1' },
      keeps: { volume: 'id' },
    },
    {
      what: 'grows a volume',
      method: 'PATCH',
      path: '/v1/networkvolumes/<volume>',
      body: { name: 'data', size: 20 },
      shows: { size: 20, dataCenterId: 'EU-RO-1' },
    },
    { what: 'deletes a volume', method: 'DELETE', path: '/v1/networkvolumes/<volume>', status: 204 },
    { what: 'asks what it costs', method: 'GET', path: '/v1/billing/pods', shows: { length: 0 } },
    ...pods('/v1/pods', 'length', 'message'),
    ...['start', 'stop', 'restart'].map(
      (action): Step => ({
        what: `is told that it can ${action} no pod`,
        method: 'POST',
        path: `/v1/pods/p1/${action}`,
        status: 404,
        body: {},
        shows: { message: `there is nothing at /v1/pods/p1/${action}: ${NO_PODS}` },
      }),
    ),
    {
      what: 'is told that a template is in use',
      method: 'DELETE',
      path: '/v1/templates/<template>',
      status: 400,
      shows: { message: "template 'ctl27' is in use by an endpoint" },
    },
    { what: 'deletes an endpoint', method: 'DELETE', path: '/v1/endpoints/<endpoint>', status: 204 },
    { what: 'deletes a template', method: 'DELETE', path: '/v1/templates/<template>', status: 204 },
    {
      what: 'is told that the endpoint is gone',
      method: 'GET',
      path: '/v1/endpoints/<endpoint>',
      status: 404,
      shows: { message: 'endpoint <endpoint> not found' },
    },
  ],
}

export const RUNPODCTL_2_14: Script = {
  tool: 'runpodctl 2.14',
  headers: { ...accept, 'user-agent': 'runpod-cli/2.14.0 (linux; amd64)' },
  steps: [
    {
      what: 'creates a template',
      method: 'POST',
      path: '/v2/templates',
      status: 201,
      body: { name: 'ctl214', image: '<image>', disk: 20, serverless: true, ports: ['8888/http'], env: { A: '1' } },
      shows: { mounts: {}, serverless: true, category: 'NVIDIA', startSsh: true, startJupyter: true, registry: null },
      keeps: { template: 'id' },
    },
    create('ctl214', { instanceIds: ['cpu3g-2-8'], idleTimeout: 5, flashBootType: 'FLASHBOOT' }),
    {
      what: 'pages through its endpoints',
      method: 'GET',
      path: '/v2/serverless?limit=1',
      shows: { 'endpoints[0].id': '<endpoint>', pagination: { nextCursor: null, hasNextPage: false } },
    },
    {
      what: 'shows an endpoint',
      method: 'GET',
      path: '/v2/serverless/<endpoint>',
      shows: {
        'workers.max': 1,
        'workers.idleTimeout': 5,
        'scaling.queueDelay': 4,
        flashboot: 'FLASHBOOT',
        args: '',
        cpu: [{ id: 'cpu3g', vcpuCount: 2, memory: 8 }],
        disk: 20,
        registry: null,
        'env.A': '1',
      },
    },
    ...job('Ada'),
    {
      what: 'asks for the health',
      method: 'GET',
      path: '/v2/<endpoint>/health',
      shows: { 'jobs.completed': 1, 'jobs.retried': 0, 'workers.throttled': 0, 'workers.unhealthy': 0 },
    },
    {
      what: 'lists workers',
      method: 'GET',
      path: '/v2/serverless/<endpoint>/workers',
      shows: { 'summary.total': 1, 'workers[0].isStale': false, 'workers[0].gpuCount': 0 },
    },
    {
      what: 'changes an endpoint',
      method: 'PATCH',
      path: '/v2/serverless/<endpoint>',
      body: { name: 'ctl214 renamed', workers: { max: 2 }, env: { A: '2' } },
      shows: { name: 'ctl214 renamed', workers: { min: 0, max: 2, idleTimeout: 5 }, env: { A: '2' } },
    },
    {
      what: 'switches the scaling, which hides the idle time',
      method: 'PATCH',
      path: '/v2/serverless/<endpoint>',
      body: { scaling: { type: 'REQUEST_COUNT', requestCount: 2 } },
      shows: { workers: { min: 0, max: 2 }, scaling: { type: 'REQUEST_COUNT', requestCount: 2 } },
    },
    {
      what: 'asks for the environment of the endpoint alone',
      method: 'POST',
      path: '/graphql',
      body: {
        query: 'query ($id: String!) { myself { endpoint(id: $id) { env { key value } } } }',
        variables: { id: '<endpoint>' },
      },
      shows: { 'data.myself.endpoint.env': [] },
    },
    ...job('Grace'),
    {
      what: 'is told all that is wrong with a change, as strings',
      method: 'PATCH',
      path: '/v2/serverless/<endpoint>',
      status: 400,
      body: { bogus: 1, disk: 0 },
      shows: {
        title: 'Bad Request',
        errors: ["$: additional properties 'bogus' not allowed", '$.disk: must be at least 1'],
      },
    },
    ...pods('/v2/pods', 'pods.length', 'detail'),
    {
      what: 'is told that it can start no pod',
      method: 'POST',
      path: '/v2/pods/p1/action',
      status: 404,
      body: { action: 'start' },
      shows: { detail: `there is nothing at /v2/pods/p1/action: ${NO_PODS}` },
    },
    { what: 'lists clusters', method: 'GET', path: '/v2/clusters', shows: { 'clusters.length': 0 } },
    { what: 'lists sandboxes', method: 'GET', path: '/v2/sandboxes', shows: { 'sandboxes.length': 0 } },
    {
      what: 'is told that there is no sandbox',
      method: 'POST',
      path: '/v2/sandboxes',
      status: 405,
      body: { name: 's' },
      shows: {
        detail: 'this path takes GET, HEAD, not POST: Runyard runs serverless endpoints, and has no sandboxes',
      },
    },
    {
      what: 'pages through GPU types and data centers',
      method: 'GET',
      path: '/v2/catalog/gpus?include=AVAILABILITY&product=SERVERLESS&count=1',
      shows: { 'gpus[0].community': false },
    },
    { what: 'deletes an endpoint', method: 'DELETE', path: '/v2/serverless/<endpoint>', status: 204 },
    {
      what: 'is told that it is gone',
      method: 'GET',
      path: '/v2/serverless/<endpoint>',
      status: 404,
      shows: { detail: 'endpoint <endpoint> not found', status: 404 },
    },
    { what: 'deletes a template', method: 'DELETE', path: '/v2/templates/<template>', status: 204 },
  ],
}
