import { type FieldNames, type FieldProblem, problemSentence } from '../../core/field-problem.ts'

/** Names of model fields in GraphQL. Omitted fields have the same name. */
const GRAPHQL_NAMES: FieldNames = {
  image: 'imageName',
  args: 'dockerArgs',
  diskGb: 'containerDiskInGb',
  volumeGb: 'volumeInGb',
  portLabels: 'portsConfig',
  registry: 'containerRegistryAuthId',
  workersPfbTarget: 'workersPFBTarget',
  idleTimeoutS: 'idleTimeout',
  'scaler.type': 'scalerType',
  'scaler.queueDelayS': 'scalerValue',
  'scaler.requestCount': 'scalerValue',
  'compute.pools': 'gpuIds',
  'compute.excludedTypes': 'gpuIds',
  'compute.count': 'gpuCount',
  'compute.configs': 'instanceIds',
  'compute.allowedCudaVersions': 'allowedCudaVersions',
  'compute.minCudaVersion': 'minCudaVersion',
  sizeGb: 'size',
  dataCenter: 'dataCenterId',
  sshKeys: 'pubKey',
}

/** A problem as GraphQL shows it: a sentence that begins with the name of the field. */
export function graphqlSentence(problem: FieldProblem): string {
  return problemSentence(problem, GRAPHQL_NAMES)
}
