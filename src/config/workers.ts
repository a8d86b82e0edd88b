import { many, oneOf, optional, PATH, setting, wholeNumber } from './setting.ts'

/** The settings of how workers that are processes are isolated. */
export const WORKERS_SETTINGS = {
  workerSandbox: setting(
    '--worker-sandbox',
    '<auto|required|off>',
    'auto',
    oneOf(['auto', 'required', 'off']),
    'run dir: workers in a cage (bubblewrap): where this machine can make one, always, or never',
  ),
  workerNetwork: setting(
    '--worker-network',
    '<open|server|shared>',
    'open',
    oneOf(['open', 'server', 'shared']),
    'what dir: workers in a cage reach: the server and the outside, the server alone, or all that this machine does',
  ),
  workerReadable: many(
    '--worker-readable',
    '<folder>',
    PATH,
    'folder that dir: workers in a cage may read, such as one with models; may be repeated',
  ),
  workerWritable: many(
    '--worker-writable',
    '<folder>',
    PATH,
    'folder that dir: workers in a cage share and may change, such as one for results; may be repeated',
  ),
  /** Null for half of what is free, 0 for no limit. */
  workerDiskGb: optional(
    '--worker-disk',
    '<GB>',
    wholeNumber(0, 1_000_000),
    'how much a dir: worker in a cage may write to its own folders; 0 for no limit (default: half of what is free, at most 100)',
  ),
  /** Null for half of what is free, 0 for no limit. */
  workerCacheGb: optional(
    '--worker-cache',
    '<GB>',
    wholeNumber(0, 1_000_000),
    'how much the cache that the dir: workers of an endpoint share may hold; 0 for no limit (default: half of what is free)',
  ),
}
