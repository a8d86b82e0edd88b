import type { FieldProblem } from '../errors.ts'

/** The fields of endpoints and templates that problems name, in the words of the model. Each surface maps them to its own. */
export type EndpointField =
  | 'workersMin'
  | 'workersMax'
  | 'idleTimeoutS'
  | 'executionTimeoutMs'
  | 'scaler.type'
  | 'scaler.queueDelayS'
  | 'scaler.requestCount'
  | 'compute.count'
  | 'compute.allowedCudaVersions'
  | 'compute.minCudaVersion'
  | 'compute.configs'
  | 'networkVolumeIds'
  | 'modelReferences'
  | 'image'
  | 'args'
  | 'diskGb'
  | 'volumeGb'
  | 'registry'

/** A problem of a field, or of one item in it. */
export function fieldProblem(field: EndpointField, problem: string, item?: string): FieldProblem {
  return item === undefined ? { field, problem } : { field, item, problem }
}

/** A problem between two fields. @param problem in which `{other}` stands for the name of the other one */
export function pairProblem(field: EndpointField, other: EndpointField, problem: string): FieldProblem {
  return { field, other, problem }
}
