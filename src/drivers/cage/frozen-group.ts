/** Freezes control groups of version 2: the kernel holds all that is in one, wherever its processes have gone. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Whether there are processes in a group. False where there is no such group. */
export function hasProcesses(group: string): boolean {
  return eventsOf(group).includes('populated 1')
}

/** Asks the kernel to hold what is in a group, or to let it go on. Does nothing where there is no such group. */
export function setFrozen(group: string, frozen: boolean): void {
  try {
    writeFileSync(join(group, 'cgroup.freeze'), frozen ? '1' : '0')
  } catch {
    // It has ended.
  }
}

/** Whether a group is to be frozen; it may take a moment until all in it are held. */
export function isToBeFrozen(group: string): boolean {
  return textOf(join(group, 'cgroup.freeze')).trim() === '1'
}

/** Whether everything in a group is held, or nothing is in it. */
export function isHeld(group: string): boolean {
  const events = eventsOf(group)
  return events.includes('frozen 1') || !events.includes('populated 1')
}

function eventsOf(group: string): string[] {
  return textOf(join(group, 'cgroup.events')).split('\n')
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
