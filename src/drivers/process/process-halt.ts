/**
 * Halts all processes of a worker by signals, where there is no control group for that.
 *
 * Parents are halted before their children and go on after them. So a parent neither starts another process in
 * between nor sees a child that is stopped, which a shell would take for a job of its own; and as long as any of them
 * is halted, the first process is.
 */
import type { WorkerId } from '../../core/ids.ts'
import { listProcesses, type ProcessState, readProcess, signal } from '../base/process-table.ts'
import type { Mark } from './process-marks.ts'
import { findFamily } from './process-strays.ts'

/** The worker whose processes are halted. */
export interface Family {
  readonly worker: WorkerId
  /** The pid of its first process, which leads a group. */
  readonly leader: number
  /** True where all of its processes descend from the first one: those in a cage cannot leave it. */
  readonly caged: boolean
  /** The mark by which all of them are found, too; null for none. */
  readonly mark: Mark | null
}

/**
 * Halts what is found of a family, and looks again, until nothing new is found and all of it rests.
 * @param again true if an earlier server began to halt it, so that halted processes cannot be told from those that
 *   stopped by themselves
 * @param wait resolves false when there is no more time to look again
 * @returns the halted processes, parents first, without those that had stopped by themselves; null when time ran out,
 *   and all of them run on
 */
export async function halt(
  family: Family,
  again: boolean,
  wait: () => Promise<boolean>,
): Promise<readonly ProcessState[] | null> {
  const halted = new Map<string, ProcessState>()
  const ownStops = new Set<string>()
  let knowsOwnStops = !again
  do {
    let rests = true
    for (const state of await familyMembers(family)) {
      const key = processKey(state)
      // Anyone may have stopped the first process, and the others with it.
      if (state.pid === family.leader && state.stopped && !halted.has(key)) knowsOwnStops = false
      if (knowsOwnStops && state.stopped && !halted.has(key)) ownStops.add(key)
      if (ownStops.has(key)) continue
      rests &&= state.resting && halted.has(key)
      if (halted.has(key) || isAboutToRest(readProcess(state.parent), halted)) continue
      halted.set(key, state)
      if (!state.stopped) signal(state.pid, 'SIGSTOP')
    }
    if (rests) return [...halted.values()]
  } while (await wait())
  goOn([...halted.values()])
  return null
}

/**
 * True for a parent that got the signal to stop and has not yet: on a busy machine it would see a child that stops
 * before it does.
 */
function isAboutToRest(parent: ProcessState | null, halted: ReadonlyMap<string, ProcessState>): boolean {
  return parent !== null && halted.has(processKey(parent)) && !parent.resting
}

/** Lets halted processes go on. */
export function goOn(halted: readonly ProcessState[]): void {
  for (const { pid, startTime } of halted.toReversed()) {
    if (readProcess(pid)?.startTime === startTime) signal(pid, 'SIGCONT')
  }
}

/** Lets all of a family go on that is stopped: by an earlier server, or by itself. */
export async function goOnAll(family: Family): Promise<void> {
  goOn((await familyMembers(family)).filter(({ stopped }) => stopped))
}

/** The living processes of a worker, parents before their children. */
export async function familyMembers({ worker, leader, caged, mark }: Family): Promise<ProcessState[]> {
  // Programs around a cage carry the variable too, and slirp4netns must go on: as the kernel does, it holds the
  // connections of the worker.
  const marked = caged ? [] : await findFamily(worker, mark)
  const processes = (await listProcesses()).filter(({ living, pid }) => living && pid !== process.pid)
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const named = new Set(marked.map(processKey))
  const roots = processes.filter(state => state.group === leader || named.has(processKey(state)))
  const members = new Set(processes.filter(({ pid }) => pid === leader))
  const grow = () => {
    for (const { pid } of members) for (const child of children.get(pid) ?? []) members.add(child)
  }
  grow()
  for (const root of roots) members.add(root)
  grow()
  return [...members]
}

/** A pid alone names no process for long. */
function processKey({ pid, startTime }: ProcessState): string {
  return `${pid} ${startTime}`
}
