import type { EndpointField } from '../../core/endpoints/field-problems.ts'

/** What REST calls the fields of endpoints and templates. */
export const REST_NAMES: Readonly<Record<EndpointField, string>> = {
  workersMin: 'workers.min',
  workersMax: 'workers.max',
  idleTimeoutS: 'workers.idleTimeout',
  executionTimeoutMs: 'timeout',
  'scaler.type': 'scaling.type',
  'scaler.queueDelayS': 'scaling.queueDelay',
  'scaler.requestCount': 'scaling.requestCount',
  'compute.count': 'gpu.count',
  'compute.allowedCudaVersions': 'allowedCudaVersions',
  'compute.minCudaVersion': 'minCudaVersion',
  'compute.configs': 'cpu',
  networkVolumeIds: 'networkVolumes',
  modelReferences: 'modelReferences',
  image: 'image',
  args: 'args',
  diskGb: 'disk',
  volumeGb: 'mounts.persistent.size',
  registry: 'registry',
}
