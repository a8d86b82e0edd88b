/** Values for workers in tests of drivers that do not depend on them. */
import { UNPLACED } from '../../src/core/workers/placement.ts'
import { ANY_PLACE } from '../../src/core/workers/worker-wish.ts'
import type { PodSettings } from '../../src/drivers/kubernetes/pod-spec.ts'
import type { WorkerSpec } from '../../src/ports/driver.ts'

/** A worker that asks for nothing: no place of its own, no disk, ports, volume, models or credential. */
export const PLAIN_WORKER: Omit<WorkerSpec, 'workerId' | 'endpointId' | 'image' | 'args'> = {
  env: {},
  protocolEnv: {},
  wish: ANY_PLACE,
  placement: UNPLACED,
  diskGb: null,
  ports: [],
  serves: null,
  volume: null,
  models: [],
  credential: null,
}

/** Answer to drivers when no endpoint was deleted. */
export const everyEndpoint = async (): Promise<boolean> => true

/** Settings of pods in a cluster without volumes, classes and tolerations. */
export const POD_SETTINGS: PodSettings = {
  gpus: { resource: 'nvidia.com/gpu', products: new Map<string, string>() },
  graceS: 30,
  stopS: 10,
  nodeLostS: 300,
  volumeClaim: null,
  modelFolder: null,
  priorityClass: null,
  runtimeClass: null,
  nodeSelector: {},
  tolerations: [],
}
