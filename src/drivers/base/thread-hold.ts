/**
 * Holds threads of a worker while others of its processes run: in a frozen group below its own, whose members are
 * threads. It belongs to the same domain, so limits and accounts of memory stay where they are.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, pause } from '../../ports/clock.ts'
import { groupThreads, hasProcesses, isHeld, setFrozen } from './control-group.ts'

/** Pauses between looks at what does not rest yet, in milliseconds: 2 s in all. */
const PAUSES_MS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 977]
/** The most threads that are held. */
const MAX_THREADS = 20_000

/** @returns a function that waits a while, each time longer; it resolves false once 2 s are over */
export function createPatience(clock: Clock): () => Promise<boolean> {
  const pausesMs = [...PAUSES_MS]
  return async () => {
    const ms = pausesMs.shift()
    if (ms === undefined) return false
    await pause(clock, ms)
    return true
  }
}

/** The group of the held threads of a worker. @param group that of the worker */
export function heldGroup(group: string): string {
  return join(group, 'held')
}

/** True where threads of a worker are held, or were about to be. @param group that of the worker */
export function isHolding(group: string): boolean {
  return existsSync(heldGroup(group))
}

/**
 * Holds all threads of a worker but some, also those that they start in the meantime. After a failure all run.
 * @param group that of the worker, which has all of its processes
 * @param wait resolves false when there is no more time
 * @returns the reason why they are not held, as a clause; null when they are
 */
export async function holdThreads(
  group: string,
  exceptThreads: readonly number[],
  wait: () => Promise<boolean>,
): Promise<string | null> {
  const held = heldGroup(group)
  const running = new Set(exceptThreads)
  try {
    prepare(held)
    do {
      const exempt = groupThreads(held).filter(thread => running.has(thread))
      const others = groupThreads(group).filter(thread => !running.has(thread))
      if (others.length > MAX_THREADS) throw new Error(`it has ${others.length} threads`)
      for (const thread of exempt) await move(thread, group)
      for (const thread of others) await move(thread, held)
      if (exempt.length + others.length === 0 && hasProcesses(held) && isHeld(held)) return null
    } while (await wait())
    throw new Error('its threads do not come to rest')
  } catch (error) {
    const problem = (error as Error).message
    await releaseThreads(group, wait).catch(() => {})
    return `its threads cannot be held: ${problem}`
  }
}

/**
 * Lets held threads run again. Does nothing where none are held.
 * @param wait resolves false when there is no more time
 * @throws an error of the system, after which some may still be held
 */
export async function releaseThreads(group: string, wait: () => Promise<boolean>): Promise<void> {
  const held = heldGroup(group)
  for (;;) {
    if (!existsSync(held)) return
    for (const thread of groupThreads(held)) await move(thread, group)
    try {
      return rmdirSync(held)
    } catch (error) {
      // A thread that ends is in its group for a moment longer.
      if (!(await wait())) throw error
    }
  }
}

/** Removes the group of a worker that has ended, and that of its held threads. */
export function removeGroup(group: string): void {
  for (const folder of [heldGroup(group), group]) {
    try {
      rmdirSync(folder)
    } catch {
      // There was none, or a process of it has not quite ended; an empty group costs next to nothing.
    }
  }
}

/** Makes the group, frozen before the first thread enters. */
function prepare(held: string): void {
  if (!existsSync(held)) {
    mkdirSync(held)
    writeFileSync(join(held, 'cgroup.type'), 'threaded')
  }
  setFrozen(held, true)
}

/** Moves a thread to a group; one that has ended needs none. */
async function move(thread: number, group: string): Promise<void> {
  try {
    await writeFile(join(group, 'cgroup.threads'), String(thread))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
