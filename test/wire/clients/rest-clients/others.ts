/** The Terraform provider over both versions, and the Python SDK after 1.12, which manages over REST. */
import { job } from './jobs.ts'
import type { Script } from './scripts.ts'

const json = { accept: 'application/json', 'content-type': 'application/json' }

export const TERRAFORM_V1: Script = {
  tool: 'the Terraform provider over version 1',
  headers: { ...json, 'user-agent': 'terraform-provider-runpod/1.0.4' },
  steps: [
    {
      what: 'creates a template',
      ...{ method: 'POST', path: '/v1/templates', status: 201 },
      body: {
        ...{
          name: 'tf',
          imageName: '<image>',
          isServerless: true,
          isPublic: false,
          containerDiskInGb: 10,
          volumeInGb: 0,
        },
        ...{ dockerEntrypoint: [], dockerStartCmd: [], env: {}, ports: [], category: 'NVIDIA' },
      },
      shows: { dockerEntrypoint: [], dockerStartCmd: [], isPublic: false, containerRegistryAuthId: null },
      keeps: { template: 'id' },
    },
    {
      what: 'creates an endpoint',
      ...{ method: 'POST', path: '/v1/endpoints', status: 201 },
      body: {
        ...{ name: 'tf', templateId: '<template>', computeType: 'GPU', gpuTypeIds: ['NVIDIA L4', 'NVIDIA RTX A5000'] },
        ...{ gpuCount: 1, workersMin: 0, workersMax: 1, idleTimeout: 5, scalerType: 'QUEUE_DELAY', scalerValue: 4 },
        ...{ executionTimeoutMs: 600_000, flashboot: true, dataCenterIds: ['EU-RO-1'], networkVolumeId: '' },
        allowedCudaVersions: ['12.4'],
      },
      shows: {
        ...{
          gpuTypeIds: ['NVIDIA L4', 'NVIDIA RTX A5000'],
          flashboot: true,
          computeType: 'GPU',
          networkVolumeId: null,
        },
        ...{ dataCenterIds: ['EU-RO-1'], allowedCudaVersions: ['12.4'], executionTimeoutMs: 600_000, version: 1 },
      },
      keeps: { endpoint: 'id' },
    },
    { what: 'reads it back', method: 'GET', path: '/v1/endpoints/<endpoint>', shows: { name: 'tf', gpuCount: 1 } },
    ...job('Ada'),
    {
      what: 'changes it',
      ...{ method: 'PATCH', path: '/v1/endpoints/<endpoint>' },
      body: { name: 'tf', gpuTypeIds: ['NVIDIA L4'], workersMax: 2, idleTimeout: 9, scalerValue: 2, flashboot: false },
      shows: { gpuTypeIds: ['NVIDIA L4'], workersMax: 2, idleTimeout: 9, scalerValue: 2, flashboot: false, version: 2 },
    },
    {
      what: 'changes the template',
      ...{ method: 'PATCH', path: '/v1/templates/<template>', body: { dockerStartCmd: [], env: { B: '2' } } },
      shows: { 'env.B': '2', imageName: '<image>' },
    },
    ...job('Grace'),
    { what: 'deletes the endpoint', method: 'DELETE', path: '/v1/endpoints/<endpoint>', status: 204 },
    { what: 'sees that it is gone', method: 'GET', path: '/v1/endpoints/<endpoint>', status: 404 },
    { what: 'deletes the template', method: 'DELETE', path: '/v1/templates/<template>', status: 204 },
  ],
}

/** Its shape of an endpoint is older than version 2, so the hosted service refuses it, too. */
export const TERRAFORM_V2: Script = {
  tool: 'the Terraform provider over version 2',
  headers: { ...json, 'user-agent': 'terraform-provider-runpod/2.0.0' },
  steps: [
    {
      what: 'is told all that is outdated in its shape of an endpoint',
      ...{ method: 'POST', path: '/v2/serverless', status: 400 },
      body: {
        ...{ name: 'tf', image: '<image>', gpu: { pools: ['ADA_24'], count: 1 }, workers: { min: 0, max: 1 } },
        ...{ scaling: { type: 'QUEUE_DELAY', value: 4, idleTimeout: 5 }, flashboot: true, networkVolumeIds: [] },
      },
      shows: {
        title: 'Bad Request',
        errors: [
          "$: additional properties 'networkVolumeIds' not allowed",
          '$.type: is required',
          '$.scaling.queueDelay: invalid input: expected number, received undefined',
          "$.scaling: additional properties 'value' not allowed; $.scaling: additional properties 'idleTimeout' not allowed",
          '$.flashboot: invalid option: expected one of "OFF"|"FLASHBOOT"|"PRIORITY_FLASHBOOT"',
        ],
      },
    },
  ],
}

const GET_USER = 'query myself { myself { id pubKey networkVolumes { id name size dataCenterId } } }'

export const PYTHON: Script = {
  tool: 'the Python SDK after 1.12',
  headers: {
    'content-type': 'application/json',
    'user-agent': 'RunPod-Python-SDK/1.13.0 (Linux 6.1.0; x86_64) Language/Python 3.11.2',
  },
  steps: [
    {
      what: 'creates templates',
      ...{ method: 'POST', path: '/v2/templates', status: 201 },
      body: {
        name: 'py',
        image: '<image>',
        disk: 10,
        serverless: true,
        args: '',
        ports: ['8888/http'],
        env: { A: '1' },
      },
      keeps: { template: 'id' },
    },
    {
      what: 'creates another template',
      ...{ method: 'POST', path: '/v2/templates', status: 201 },
      body: { name: 'py 2', image: '<image>', disk: 12, serverless: true, args: '', env: { B: '2' } },
      keeps: { other: 'id' },
    },
    {
      what: 'creates an endpoint',
      ...{ method: 'POST', path: '/v2/serverless', status: 201 },
      body: {
        ...{ name: 'py', type: 'QUEUE', templateId: '<template>', flashboot: 'FLASHBOOT' },
        gpu: { pools: ['ADA_48_PRO'], count: 1, excludedTypes: ['NVIDIA L40'], allowedCudaVersions: ['12.4', '12.5'] },
        ...{ workers: { min: 0, max: 1, idleTimeout: 5 }, scaling: { type: 'QUEUE_DELAY', queueDelay: 4 } },
        ...{ networkVolumes: [], dataCenterIds: [] },
      },
      shows: {
        ...{
          'gpu.excludedTypes': ['NVIDIA L40'],
          'gpu.minCudaVersion': null,
          'env.A': '1',
          disk: 10,
          image: '<image>',
        },
        ...{
          workers: { min: 0, max: 1, idleTimeout: 5 },
          flashboot: 'FLASHBOOT',
          timeout: 300_000,
          templateId: undefined,
        },
      },
      keeps: { endpoint: 'id' },
    },
    {
      what: 'lists endpoints',
      ...{ method: 'GET', path: '/v2/serverless' },
      shows: { 'endpoints[0].id': '<endpoint>', 'pagination.nextCursor': null },
    },
    ...job('Ada'),
    {
      what: 'lists workers',
      ...{ method: 'GET', path: '/v2/serverless/<endpoint>/workers' },
      shows: { 'summary.total': 1, endpointVersion: 1 },
    },
    {
      what: 'moves the endpoint to another template',
      ...{ method: 'PATCH', path: '/v2/serverless/<endpoint>', body: { templateId: '<other>' } },
      shows: { env: { B: '2' }, disk: 12, 'gpu.pools': ['ADA_48_PRO'] },
    },
    ...job('Grace'),
    {
      what: 'saves a credential',
      ...{ method: 'POST', path: '/v2/registries', status: 201, body: { name: 'hub', username: 'u', password: 'p' } },
      keeps: { registry: 'id' },
    },
    {
      what: 'changes a credential',
      ...{ method: 'POST', path: '/graphql' },
      body: {
        query: 'mutation { updateRegistryAuth(input: {id: "<registry>", username: "v", password: "q"}) { id name } }',
        variables: {},
      },
      shows: { 'data.updateRegistryAuth': { id: '<registry>', name: 'hub' } },
    },
    { what: 'deletes a credential', method: 'DELETE', path: '/v2/registries/<registry>', status: 204 },
    { what: 'lists GPU types', method: 'GET', path: '/v2/catalog/gpus', shows: { 'gpus[1].pool': 'AMPERE_80' } },
    {
      what: 'describes a GPU type',
      method: 'GET',
      path: '/v2/catalog/gpus/NVIDIA%20GeForce%20RTX%204090?include=AVAILABILITY&product=POD&count=2',
      shows: { id: 'NVIDIA GeForce RTX 4090', memory: 24, pool: 'ADA_24', availability: 'NONE' },
    },
    {
      what: 'replaces SSH keys',
      ...{ method: 'PUT', path: '/v2/account/ssh-keys', body: { keys: ['ssh-ed25519 AAAAC3Nz me@home'] } },
      shows: { keys: ['ssh-ed25519 AAAAC3Nz me@home'] },
    },
    {
      what: 'asks who it is',
      ...{ method: 'POST', path: '/graphql', body: { query: GET_USER, variables: {} } },
      shows: { 'data.myself.pubKey': 'ssh-ed25519 AAAAC3Nz me@home', 'data.myself.networkVolumes': [] },
    },
    { what: 'deletes the endpoint', method: 'DELETE', path: '/v2/serverless/<endpoint>', status: 204 },
    { what: 'deletes a template', method: 'DELETE', path: '/v2/templates/<template>', status: 204 },
    { what: 'deletes the other template', method: 'DELETE', path: '/v2/templates/<other>', status: 204 },
    { what: 'sees no template', method: 'GET', path: '/v2/templates', shows: { templates: [] } },
  ],
}
