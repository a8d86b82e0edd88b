/** The fields that sentences about mistakes name, and what a surface calls each of them. */
export interface FieldNames {
  readonly workersMin: string
  readonly workersMax: string
  readonly idleTimeout: string
  readonly executionTimeout: string
  readonly scalerType: string
  readonly queueDelay: string
  readonly requestCount: string
  readonly gpuCount: string
  readonly allowedCudaVersions: string
  readonly minCudaVersion: string
  readonly cpu: string
  readonly networkVolumes: string
  readonly modelReferences: string
  readonly image: string
  readonly args: string
  readonly disk: string
  readonly volume: string
  readonly registry: string
}

/** What GraphQL calls the fields. */
export const GRAPHQL_NAMES: FieldNames = {
  workersMin: 'workersMin',
  workersMax: 'workersMax',
  idleTimeout: 'idleTimeout',
  executionTimeout: 'executionTimeoutMs',
  scalerType: 'scalerType',
  queueDelay: 'scalerValue',
  requestCount: 'scalerValue',
  gpuCount: 'gpuCount',
  allowedCudaVersions: 'allowedCudaVersions',
  minCudaVersion: 'minCudaVersion',
  cpu: 'instanceIds',
  networkVolumes: 'networkVolumeIds',
  modelReferences: 'modelReferences',
  image: 'imageName',
  args: 'dockerArgs',
  disk: 'containerDiskInGb',
  volume: 'volumeInGb',
  registry: 'containerRegistryAuthId',
}

/** What REST calls the fields. */
export const REST_NAMES: FieldNames = {
  workersMin: 'workers.min',
  workersMax: 'workers.max',
  idleTimeout: 'workers.idleTimeout',
  executionTimeout: 'timeout',
  scalerType: 'scaling.type',
  queueDelay: 'scaling.queueDelay',
  requestCount: 'scaling.requestCount',
  gpuCount: 'gpu.count',
  allowedCudaVersions: 'allowedCudaVersions',
  minCudaVersion: 'minCudaVersion',
  cpu: 'cpu',
  networkVolumes: 'networkVolumes',
  modelReferences: 'modelReferences',
  image: 'image',
  args: 'args',
  disk: 'disk',
  volume: 'mounts.persistent.size',
  registry: 'registry',
}
