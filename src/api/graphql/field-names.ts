import type { EndpointField } from '../../core/endpoints/field-problems.ts'

/** What GraphQL calls the fields of endpoints and templates. */
export const GRAPHQL_NAMES: Readonly<Record<EndpointField, string>> = {
  workersMin: 'workersMin',
  workersMax: 'workersMax',
  idleTimeoutS: 'idleTimeout',
  executionTimeoutMs: 'executionTimeoutMs',
  'scaler.type': 'scalerType',
  'scaler.queueDelayS': 'scalerValue',
  'scaler.requestCount': 'scalerValue',
  'compute.count': 'gpuCount',
  'compute.allowedCudaVersions': 'allowedCudaVersions',
  'compute.minCudaVersion': 'minCudaVersion',
  'compute.configs': 'instanceIds',
  networkVolumeIds: 'networkVolumeIds',
  modelReferences: 'modelReferences',
  image: 'imageName',
  args: 'dockerArgs',
  diskGb: 'containerDiskInGb',
  volumeGb: 'volumeInGb',
  registry: 'containerRegistryAuthId',
}
