/** Control groups of version 2: their processes, and the freeze of all that is in one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readOptional } from '../../disk/optional-files.ts'

/** True where there are processes in a group. False where there is no such group. */
export function hasProcesses(group: string): boolean {
  return readEvents(group).includes('populated 1')
}

/** Asks the kernel to hold what is in a group, or to let it go on. Does nothing where there is no such group. */
export function setFrozen(group: string, frozen: boolean): void {
  try {
    writeFileSync(join(group, 'cgroup.freeze'), frozen ? '1' : '0')
  } catch {
    // The worker has ended.
  }
}

/** True for a group that should be frozen; it may take a moment until all in it are held. */
export function isToBeFrozen(group: string): boolean {
  return readOptional(join(group, 'cgroup.freeze')).trim() === '1'
}

/** True where everything in a group is held, or nothing is in it. */
export function isHeld(group: string): boolean {
  const events = readEvents(group)
  return events.includes('frozen 1') || !events.includes('populated 1')
}

/** The pids of the processes in a group and below it; none where there is no such group. */
export function groupPids(group: string): number[] {
  return readNumbers(join(group, 'cgroup.procs'))
}

/** The ids of the threads in a group, without groups below it; none where there is no such group. */
export function groupThreads(group: string): number[] {
  return readNumbers(join(group, 'cgroup.threads'))
}

/** Moves a process to a group with all of its threads. @returns false when that cannot be done, or it has ended */
export function joinGroup(group: string, pid: number): boolean {
  try {
    writeFileSync(join(group, 'cgroup.procs'), String(pid))
    return true
  } catch {
    return false
  }
}

function readNumbers(path: string): number[] {
  return readOptional(path).split('\n').filter(Boolean).map(Number)
}

function readEvents(group: string): string[] {
  return readOptional(join(group, 'cgroup.events')).split('\n')
}
