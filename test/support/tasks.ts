/** Tasks of RunPod's SDK 2.0 on a server of a test. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { EndpointId } from '../../src/core/ids.ts'
import { openBalancedRig } from './balanced.ts'
import type { Asking, Rig, RigOptions } from './rig.ts'

/** The token of the program of a task. */
export const TOKEN = 'a-token-of-the-client-0123456789'
const AT = { publicUrl: 'https://box.lan:8443' }
/** The smallest task. */
export const CPU = { instanceId: 'cpu3c-2-4' }

/** A server with an address at which clients reach tasks. */
export async function openTaskRig(t: TestContext, options: RigOptions = {}) {
  const opened = await openBalancedRig(t, { ...AT, ...options })
  return { ...opened, rig: opened.rig }
}

/** The variables of a task, as the SDK sends them. */
export const env = (more: Readonly<Record<string, string>> = {}) =>
  Object.entries({ RUNPOD_TASK_TOKEN: TOKEN, RUNPOD_TASK_PORT: '8080', ...more }).map(([key, value]) => ({
    key,
    value,
  }))

/** Asks for a task. */
export function deploy(rig: Rig, fields: object = CPU, asking: Asking = {}) {
  const isGpu = 'gpuTypeIdList' in fields
  const [name, type] = isGpu
    ? ['podFindAndDeployOnDemand', 'PodFindAndDeployOnDemandInput']
    : ['deployCpuPod', 'deployCpuPodInput!']
  const query = `mutation ($input: ${type}) { pod: ${name}(input: $input) { id desiredStatus } }`
  const input = {
    name: 'task-train-01',
    imageName: 'runpod/task:py3.11-latest',
    containerDiskInGb: 10,
    ports: '8080/http',
  }
  const variables = {
    input: { supportPublicIp: true, dataCenterIds: ['EU-RO-1'], volumeMounts: [], env: env(), ...input, ...fields },
  }
  return rig.ask('POST', '/graphql', { ...asking, body: { query, variables } })
}

/** Deploys a task. @returns the id of clients and the short one */
export async function deployed(rig: Rig, fields: object = CPU): Promise<{ id: string; short: EndpointId }> {
  const { json, text } = await deploy(rig, fields)
  assert.equal(json.errors, undefined, text)
  assert.equal(json.data.pod.desiredStatus, 'RUNNING')
  const { id } = json.data.pod
  return { id, short: id.slice(id.lastIndexOf('/') + 1) }
}

/** The tasks of the account. */
export const pods = async (rig: Rig) => (await rig.ask('GET', '/v2/pods')).json.pods
/** The address of a task by any of its ids. */
export const podPath = (id: string) => `/v2/pods/${encodeURIComponent(id)}`
