/** The settings about how workers that are processes are kept apart. */
import { many, notEmpty, oneOf, type Setting, setting, wholeNumber } from './setting.ts'

/** Whether process workers run in a cage: where it can be made, always, or never. */
export type WorkerSandbox = 'auto' | 'required' | 'off'

/** What workers in cages reach: the server and the outside, the server alone, or all that this machine does. */
export type WorkerNetwork = 'open' | 'server' | 'shared'

/** How process workers are kept from the server and from each other. */
export interface WorkersConfig {
  readonly workerSandbox: WorkerSandbox
  readonly workerNetwork: WorkerNetwork
  /** Absolute paths of folders that workers in a cage may read beside those that they need by themselves. */
  readonly workerReadable: readonly string[]
  /** Absolute paths of folders that all workers in cages share and may change. */
  readonly workerWritable: readonly string[]
  /** How much a worker in a cage may write to folders of its own, in GB; null for half of what is free, 0 for no limit. */
  readonly workerDiskGb: number | null
}

/** By the names of their options, as SETTINGS has them. */
export const WORKERS_SETTINGS: Readonly<Record<string, Setting>> = {
  workerSandbox: setting(
    '--worker-sandbox',
    'WORKER_SANDBOX',
    '<auto|required|off>',
    'off',
    'run dir: workers in a cage (bubblewrap): where this machine can make one, always, or never',
    oneOf(['auto', 'required', 'off']),
  ),
  workerNetwork: setting(
    '--worker-network',
    'WORKER_NETWORK',
    '<open|server|shared>',
    'open',
    'what dir: workers in a cage reach: the server and the outside, the server alone, or all that this machine does',
    oneOf(['open', 'server', 'shared']),
  ),
  workerReadable: many(
    setting(
      '--worker-readable',
      'WORKER_READABLE',
      '<folder>',
      null,
      'folder that dir: workers in a cage may read, such as one with models; may be repeated',
      notEmpty,
    ),
  ),
  workerWritable: many(
    setting(
      '--worker-writable',
      'WORKER_WRITABLE',
      '<folder>',
      null,
      'folder that dir: workers in a cage share and may change, such as one for results; may be repeated',
      notEmpty,
    ),
  ),
  workerDisk: setting(
    '--worker-disk',
    'WORKER_DISK',
    '<GB>',
    null,
    'how much a dir: worker in a cage may write to its own folders; 0 for no limit (default: half of what is free, at most 100)',
    wholeNumber(0, 1_000_000),
  ),
}

/** @param texts what was given for each of {@link WORKERS_SETTINGS} */
export function workersConfig(
  texts: (name: string) => readonly string[],
  absolute: (path: string) => string,
): WorkersConfig {
  return {
    workerSandbox: (texts('workerSandbox')[0] ?? 'off') as WorkerSandbox,
    workerNetwork: (texts('workerNetwork')[0] ?? 'open') as WorkerNetwork,
    workerReadable: texts('workerReadable').map(absolute),
    workerWritable: texts('workerWritable').map(absolute),
    workerDiskGb: texts('workerDisk')[0] === undefined ? null : Number(texts('workerDisk')[0]),
  }
}
