import { type FieldNames, type FieldProblem, problemSentence } from '../../core/field-problem.ts'

/** Names of model fields in REST version 1. Omitted fields have the same name. */
const V1_NAMES: FieldNames = {
  image: 'imageName',
  args: 'dockerStartCmd',
  diskGb: 'containerDiskInGb',
  volumeGb: 'volumeInGb',
  registry: 'containerRegistryAuthId',
  idleTimeoutS: 'idleTimeout',
  'scaler.type': 'scalerType',
  'scaler.queueDelayS': 'scalerValue',
  'scaler.requestCount': 'scalerValue',
  'compute.pools': 'gpuTypeIds',
  'compute.excludedTypes': 'gpuTypeIds',
  'compute.count': 'gpuCount',
  'compute.configs': 'cpuFlavorIds',
  'compute.allowedCudaVersions': 'allowedCudaVersions',
  'compute.minCudaVersion': 'minCudaVersion',
  locations: 'dataCenterIds',
  sizeGb: 'size',
  dataCenter: 'dataCenterId',
  size: 'bucketSize',
  startMs: 'startTime',
  endMs: 'endTime',
}

/** A problem as REST version 1 shows it: a sentence that begins with the name of the field. */
export function v1Sentence(problem: FieldProblem): string {
  return problemSentence(problem, V1_NAMES)
}
