/** Free memory, as Linux reports it in /proc and in control groups of both versions. */
import { dirname, join } from 'node:path'
import { type MachineMemory, tightest } from '../../core/hardware/machine-use.ts'
import { readOptional } from '../../disk/optional-files.ts'

/** The files of a control group that limits memory. */
interface GroupFiles {
  readonly folder: string
  readonly limit: string
  readonly used: string
  /** The line of memory.stat with the bytes of files in the cache. */
  readonly cached: string
}

const V1: Omit<GroupFiles, 'folder'> = {
  limit: 'memory.limit_in_bytes',
  used: 'memory.usage_in_bytes',
  cached: 'total_inactive_file',
}
const V2: Omit<GroupFiles, 'folder'> = { limit: 'memory.max', used: 'memory.current', cached: 'inactive_file' }

/**
 * The least free memory: of the machine, of the control group of this server, or of a group around it.
 * @param root the folder below which /proc and /sys are; that of the system unless given
 * @returns null on a system that does not show it
 */
export function readMemory(root = '/'): MachineMemory | null {
  const { machine, groups } = readMemories('self', root)
  return machine === null ? null : tightest([machine, ...groups])
}

/**
 * Free memory of the machine, and of each control group with a limit for a process.
 * @param pid a process, or `self`
 * @returns the machine is null on a system that does not show it
 */
export function readMemories(
  pid: number | 'self',
  root = '/',
): { readonly machine: MachineMemory | null; readonly groups: readonly MachineMemory[] } {
  const text = (path: string) => readOptional(join(root, path))
  const kb = namedNumbers(text('proc/meminfo'))
  const [total, available] = [kb.get('MemTotal'), kb.get('MemAvailable')]
  if (total === undefined || available === undefined || total === 0) return { machine: null, groups: [] }
  const machine = { totalBytes: total * 1024, availableBytes: available * 1024 }
  const groups = listGroups(text(`proc/${pid}/cgroup`)).map(group =>
    groupMemory({ ...group, folder: join(root, group.folder) }),
  )
  // A limit beyond the machine has no effect.
  return {
    machine,
    groups: groups.filter(group => group !== null).filter(({ totalBytes }) => totalBytes < machine.totalBytes),
  }
}

/** Bytes of a process in memory that are of no file; 0 where the system does not show it. */
export function anonymousBytes(pid: number, root = '/'): number {
  return (namedNumbers(readOptional(join(root, `proc/${pid}/status`))).get('RssAnon') ?? 0) * 1024
}

/** The groups of a process, by its list of them. In a container the path may be that outside, which does not exist. */
function listGroups(list: string): GroupFiles[] {
  return list.split('\n').flatMap(line => {
    const [, names, ...rest] = line.split(':')
    const path = rest.join(':')
    if (path === '') return []
    if (names === '') return upwards(path).map(folder => ({ ...V2, folder: join('sys/fs/cgroup', folder) }))
    if (names?.split(',').includes('memory') !== true) return []
    return upwards(path).map(folder => ({ ...V1, folder: join('sys/fs/cgroup/memory', folder) }))
  })
}

function groupMemory({ folder, limit, used, cached }: GroupFiles): MachineMemory | null {
  const [max, usage] = [limit, used].map(file => readOptional(join(folder, file)).trim())
  // Without a limit the file has "max".
  if (!/^\d+$/.test(max ?? '') || !/^\d+$/.test(usage ?? '')) return null
  const totalBytes = Number(max)
  if (totalBytes === 0) return null
  const cachedBytes = namedNumbers(readOptional(join(folder, 'memory.stat'))).get(cached) ?? 0
  return { totalBytes, availableBytes: Math.max(0, Math.min(totalBytes, totalBytes - Number(usage) + cachedBytes)) }
}

function upwards(path: string): string[] {
  const folders = [path]
  while (folders.at(-1) !== dirname(folders.at(-1) ?? '/')) folders.push(dirname(folders.at(-1) ?? '/'))
  return folders
}

/** Lines such as `MemTotal:  1024 kB` and `inactive_file 1024`. */
function namedNumbers(text: string): Map<string, number> {
  return new Map([...text.matchAll(/^([\w()]+):?\s+(\d+)/gm)].map(([, name = '', number]) => [name, Number(number)]))
}
