/**
 * The apps SDK, which saves through REST the fields that REST has and through GraphQL the others; and the requests
 * that flash sends beside GraphQL.
 */

import { job } from './jobs.ts'
import type { Script } from './scripts.ts'

const SAVE_ENDPOINT = `
  mutation saveEndpoint($input: EndpointInput!) {
    saveEndpoint(input: $input) {
      aiKey id name templateId gpuIds instanceIds networkVolumeId networkVolumeIds { networkVolumeId dataCenterId } locations
      idleTimeout scalerType scalerValue workersMin workersMax gpuCount minCudaVersion executionTimeoutMs flashBootType
    }
  }`

const agent = 'RunPod-Python-SDK/1.14.0 (Linux 6.1.0; x86_64) Language/Python 3.12.1'

export const APPS: Script = {
  tool: 'the apps SDK',
  headers: { 'content-type': 'application/json', 'user-agent': agent },
  steps: [
    {
      what: 'creates a secret',
      method: 'POST',
      path: '/graphql',
      body: {
        query: 'mutation secretCreate($input: SecretCreateInput!) { secretCreate(input: $input) { id name } }',
        variables: { input: { name: 'apps-token', value: 'hidden', description: '' } },
      },
      shows: { 'data.secretCreate.name': 'apps-token' },
      keeps: { secret: 'data.secretCreate.id' },
    },
    {
      what: 'looks whether its secrets are there',
      method: 'POST',
      path: '/graphql',
      body: { query: 'query { myself { secrets { id name description createdAt } } }', variables: {} },
      shows: { 'data.myself.secrets[0].name': 'apps-token', 'data.myself.secrets[0].description': '' },
    },
    {
      what: 'makes a volume',
      method: 'POST',
      path: '/v2/network-volumes',
      status: 201,
      body: { name: 'models', size: 10, dataCenter: 'EU-RO-1' },
      keeps: { volume: 'id' },
      shows: { type: 'STANDARD', size: 10 },
    },
    {
      what: 'saves an endpoint through REST',
      method: 'POST',
      path: '/v2/serverless',
      status: 201,
      body: {
        name: 'app',
        type: 'QUEUE',
        image: '<image>',
        disk: 20,
        cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
        env: { TOKEN: '{{ RUNPOD_SECRET_apps-token }}' },
        networkVolumes: ['<volume>'],
        dataCenterIds: ['EU-RO-1'],
        workers: { min: 0, max: 1, idleTimeout: 60 },
        scaling: { type: 'QUEUE_DELAY', queueDelay: 0.5 },
        timeout: 60_000,
        flashboot: 'OFF',
      },
      shows: { 'env.TOKEN': '{{ RUNPOD_SECRET_apps-token }}', networkVolumes: ['<volume>'], 'scaling.queueDelay': 0.5 },
      keeps: { endpoint: 'id' },
    },
    ...job('Ada'),
    {
      what: 'runs a job without an input',
      method: 'POST',
      path: '/v2/<endpoint>/run',
      body: { input: { __empty: true } },
      keeps: { job: 'id' },
    },
    {
      what: 'sees it end',
      method: 'GET',
      path: '/v2/<endpoint>/status/<job>',
      ends: true,
      shows: { status: 'COMPLETED', error: undefined, 'output.message': 'Hello, world!' },
    },
    {
      what: 'cannot retry what is done',
      method: 'POST',
      path: '/v2/<endpoint>/retry/<job>',
      status: 409,
    },
    {
      what: 'changes it through GraphQL to what REST has no word for',
      method: 'POST',
      path: '/graphql',
      body: {
        query: SAVE_ENDPOINT,
        variables: {
          input: { id: '<endpoint>', name: 'app', instanceIds: ['cpu3g-1-4'], workersMin: 0, workersMax: 2 },
        },
      },
      shows: {
        'data.saveEndpoint.instanceIds': ['cpu3g-1-4'],
        'data.saveEndpoint.idleTimeout': 60,
        'data.saveEndpoint.networkVolumeIds': [{ networkVolumeId: '<volume>', dataCenterId: 'EU-RO-1' }],
      },
      keeps: { aiKey: 'data.saveEndpoint.aiKey' },
    },
    {
      what: 'sees the same through REST',
      method: 'GET',
      path: '/v2/serverless/<endpoint>',
      shows: { cpu: [{ id: 'cpu3g', vcpuCount: 1, memory: 4 }], 'workers.max': 2, timeout: 60_000 },
    },
    ...job('Grace'),
    {
      what: 'looks at the workers with the key of the endpoint',
      method: 'GET',
      path: '/v2/<endpoint>/metrics',
      key: 'aiKey',
      shows: { 'workers.unhealthy': 0 },
    },
    { what: 'deletes the endpoint', method: 'DELETE', path: '/v2/serverless/<endpoint>', status: 204 },
    { what: 'finds its jobs gone', method: 'GET', path: '/v2/<endpoint>/status/<job>', status: 404 },
    { what: 'deletes the volume', method: 'DELETE', path: '/v2/network-volumes/<volume>', status: 204 },
    {
      what: 'deletes the secret',
      method: 'POST',
      path: '/graphql',
      body: { query: 'mutation secretDelete($id: ID!) { secretDelete(id: $id) }', variables: { id: '<secret>' } },
      shows: { 'data.secretDelete': null },
    },
  ],
}

export const FLASH: Script = {
  tool: 'flash',
  headers: { 'content-type': 'application/json', 'user-agent': 'Runpod Flash/1.19.0 (Linux 6.1.0; x86_64)' },
  steps: [
    {
      what: 'makes a volume',
      method: 'POST',
      path: '/v1/networkvolumes',
      status: 201,
      body: { name: 'flash', size: 100, dataCenterId: 'EU-RO-1' },
      keeps: { volume: 'id' },
    },
    {
      what: 'lists volumes',
      method: 'GET',
      path: '/v1/networkvolumes',
      shows: { '[0].id': '<volume>', '[0].size': 100 },
    },
    {
      what: 'saves an endpoint with a template inside',
      method: 'POST',
      path: '/graphql',
      body: {
        query: SAVE_ENDPOINT,
        variables: {
          input: {
            name: 'flash',
            instanceIds: ['cpu3g-2-8'],
            networkVolumeId: '<volume>',
            workersMin: 0,
            workersMax: 1,
            template: { name: 'flash__t', imageName: '<image>', containerDiskInGb: 10, dockerArgs: '', env: [] },
            idleTimeout: 60,
            scalerType: 'QUEUE_DELAY',
            scalerValue: 4,
            locations: '',
            type: 'QB',
          },
        },
      },
      shows: { 'data.saveEndpoint.networkVolumeId': '<volume>' },
      keeps: {
        endpoint: 'data.saveEndpoint.id',
        aiKey: 'data.saveEndpoint.aiKey',
        template: 'data.saveEndpoint.templateId',
      },
    },
    ...job('Ada'),
    {
      what: 'reads the status with the key of the endpoint',
      method: 'GET',
      path: '/v2/<endpoint>/status/<job>',
      key: 'aiKey',
      shows: { status: 'COMPLETED', id: '<job>' },
    },
    {
      what: 'asks for the health with all counters',
      method: 'GET',
      path: '/v2/<endpoint>/health',
      shows: { 'jobs.completed': 1, 'workers.initializing': 0, 'workers.throttled': 0, 'workers.unhealthy': 0 },
    },
    {
      what: 'brings the endpoint to rest',
      method: 'POST',
      path: '/graphql',
      body: {
        query: SAVE_ENDPOINT,
        variables: { input: { id: '<endpoint>', name: 'flash', workersMin: 0, workersMax: 0, networkVolumeId: '' } },
      },
      shows: { 'data.saveEndpoint.workersMax': 0, 'data.saveEndpoint.networkVolumeId': null },
    },
    {
      what: 'deletes the endpoint',
      method: 'POST',
      path: '/graphql',
      body: {
        query: 'mutation deleteEndpoint($id: String!) { deleteEndpoint(id: $id) }',
        variables: { id: '<endpoint>' },
      },
      shows: { 'data.deleteEndpoint': null },
    },
    { what: 'deletes the volume', method: 'DELETE', path: '/v1/networkvolumes/<volume>', status: 204 },
    { what: 'finds its template gone', method: 'GET', path: '/v2/templates/<template>', status: 404 },
  ],
}
