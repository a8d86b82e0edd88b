/** The control groups of a process of this machine, of both versions. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readOptional } from '../../disk/optional-files.ts'
import { groupPids } from './control-group.ts'

const ROOT = '/sys/fs/cgroup'
/** Folders of groups of version 2, alone and beside those of version 1. */
const UNIFIED_ROOTS = [ROOT, join(ROOT, 'unified')]
/** The most groups that are read of one worker. */
const MAX_GROUPS = 1_000

/** The groups of a process; those that cannot be seen here are left out. */
export interface ProcessGroups {
  /** That of version 2; null without one. */
  readonly unified: string | null
  /** Those of version 1. */
  readonly others: readonly string[]
}

/** Finds the groups of a process. @param name part of the path of its own groups: it may be in those of others too */
export function findGroups(pid: number, name: string): ProcessGroups {
  const groups = { unified: null as string | null, others: [] as string[] }
  for (const line of readOptional(`/proc/${pid}/cgroup`).split('\n')) {
    const [, controllers, ...rest] = line.split(':')
    // The first thread may be in the group of held ones.
    const path = rest.join(':').replace(/\/held$/, '')
    if (controllers === undefined || !path.includes(name)) continue
    const roots = controllers === '' ? UNIFIED_ROOTS : [join(ROOT, controllers.replace(/^name=/, ''))]
    const folder = roots.map(root => join(root, path)).find(candidate => existsSync(join(candidate, 'cgroup.procs')))
    if (folder === undefined) continue
    if (controllers === '') groups.unified = folder
    else groups.others.push(folder)
  }
  return groups
}

/** The pids of the processes in a group and below it, without those of other namespaces. */
export function listGroup(group: string): number[] {
  const pids = new Set<number>()
  const folders = [group]
  for (const folder of folders) {
    for (const pid of groupPids(folder)) if (pid > 0) pids.add(pid)
    if (folders.length < MAX_GROUPS) folders.push(...subgroups(folder))
  }
  return [...pids]
}

function subgroups(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true })
    return entries.filter(entry => entry.isDirectory()).map(entry => join(folder, entry.name))
  } catch {
    return []
  }
}
