import { type FieldNames, type FieldProblem, problemWithoutField } from '../../core/field-problem.ts'

/** Names of model fields in REST version 2. Omitted fields have the same name. */
const REST_NAMES: FieldNames = {
  diskGb: 'disk',
  volumeGb: 'mounts.persistent.size',
  workersMin: 'workers.min',
  workersMax: 'workers.max',
  idleTimeoutS: 'workers.idleTimeout',
  executionTimeoutMs: 'timeout',
  'scaler.type': 'scaling.type',
  'scaler.queueDelayS': 'scaling.queueDelay',
  'scaler.requestCount': 'scaling.requestCount',
  'compute.pools': 'gpu.pools',
  'compute.excludedTypes': 'gpu.excludedTypes',
  'compute.count': 'gpu.count',
  'compute.configs': 'cpu',
  'compute.allowedCudaVersions': 'gpu.allowedCudaVersions',
  'compute.minCudaVersion': 'gpu.minCudaVersion',
  locations: 'dataCenterIds',
  networkVolumeIds: 'networkVolumes',
  sizeGb: 'size',
  expiresAtMs: 'expiresAt',
  size: 'bucketSize',
  startMs: 'startTime',
  endMs: 'endTime',
  fromMs: 'from',
  toMs: 'to',
}

/** A problem as REST version 2 shows it: the path of the field, then what is wrong. @param place the part of the request */
export function restSentence(problem: FieldProblem, place: '$' | 'query' = '$'): string {
  const name = REST_NAMES[problem.field] ?? problem.field
  return `${place}.${name}: ${problemWithoutField(problem, REST_NAMES)}`
}
