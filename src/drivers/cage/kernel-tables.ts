/**
 * Tables of the kernel in /proc and /sys that have no namespace: they show the whole machine, its keys, its
 * memory and its other programs. A worker of a server that runs as root could read most of them, since their owner is
 * root.
 */
import { statSync } from 'node:fs'

/** A table that is empty in a cage. */
export interface Mask {
  readonly path: string
  readonly isFolder: boolean
}

/** `mm` in /sys/kernel stays: allocators ask it for huge pages. */
export const KERNEL_FOLDER = '/sys/kernel'
export const KERNEL_MEMORY = '/sys/kernel/mm'

const IN_PROC = [
  ...[
    'acpi',
    'asound',
    'config.gz',
    'interrupts',
    'iomem',
    'ioports',
    'kallsyms',
    'kcore',
    'key-users',
    'keys',
    'kmsg',
  ],
  ...[
    'kpagecgroup',
    'kpagecount',
    'kpageflags',
    'latency_stats',
    'lockdep',
    'lockdep_chains',
    'lockdep_stats',
    'locks',
  ],
  ...[
    'lock_stat',
    'mtrr',
    'pagetypeinfo',
    'sched_debug',
    'schedstat',
    'scsi',
    'slabinfo',
    'sysrq-trigger',
    'timer_list',
  ],
  ...['timer_stats', 'vmallocinfo'],
]
const IN_SYS = ['firmware', 'fs/bpf', 'fs/pstore', 'fs/selinux', 'devices/virtual/powercap', 'hypervisor']

/** The tables of this machine. A cage cannot cover missing files. */
export function kernelMasks(): Mask[] {
  const paths = [...IN_PROC.map(name => `/proc/${name}`), ...IN_SYS.map(name => `/sys/${name}`), KERNEL_FOLDER]
  return paths.flatMap(path => {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats === undefined ? [] : [{ path, isFolder: stats.isDirectory() }]
  })
}
