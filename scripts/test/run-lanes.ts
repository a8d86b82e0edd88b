/** Runs the files of all lanes, each lane one after another. */
import type { Lane, Queues, Task } from './lanes.ts'
import type { Counts, FileResult } from './run-file.ts'

/** Runs the files of lanes, and knows when a processor is free for one more. */
export interface LaneHost {
  /** Runs a task. @param isLow true for the processor time that others leave */
  run(task: Task, isLow: boolean): Promise<FileResult>
  /** Resolves once most of a processor is free, or when nobody needs one any more. */
  untilFree(isOver: () => boolean): Promise<void>
  /** Called with each result when it is there. */
  show(result: FileResult): void
}

/**
 * Runs all tasks. Only pure tests run before the programs are ready, and those that use a container engine run after
 * those that stop it. A task that cannot be run has failed, and its lane goes on.
 * @param programs resolves once the programs of tests are installed
 * @param onEnd called when a lane has ended
 * @returns one result of each task, in the order in which they ended
 * @throws what `programs` rejects with
 */
export async function runLanes(
  { queues, lanes }: { readonly queues: Queues; readonly lanes: readonly Lane[] },
  programs: Promise<void>,
  host: LaneHost,
  onEnd: () => void = () => {},
): Promise<FileResult[]> {
  const results: FileResult[] = []
  const engineIsFree = Promise.withResolvers<void>()
  let isReady = false
  const ready = programs.then(() => {
    isReady = true
  })
  const runLane = async ({ queues: names, isLow = false, endsWhenReady = false, needsProcessor = false }: Lane) => {
    for (const name of names) {
      if (!isLow || name !== 'pure') await ready
      if (name === 'containers' || name === 'waitingContainers') await engineIsFree.promise
      const queue = queues[name]
      const isEmpty = () => queue.length === 0
      for (;;) {
        if (needsProcessor) await host.untilFree(isEmpty)
        const task = queue.shift()
        if (task === undefined) break
        const result = await resultOf(task, () => host.run(task, isLow))
        results.push(result)
        host.show(result)
        if (endsWhenReady && isReady) return
      }
      if (name === 'engine') engineIsFree.resolve()
    }
    onEnd()
  }
  await Promise.all(lanes.map(runLane))
  return results
}

/** The result of a task; one failed test with the reason, if the task cannot be run. */
export async function resultOf(task: Task, run: () => Promise<FileResult>): Promise<FileResult> {
  const began = performance.now()
  try {
    return await run()
  } catch (error) {
    const counts = { tests: 1, passed: 0, skipped: 0, todo: 0 }
    const output = `${task.file} cannot be run: ${error instanceof Error ? error.stack : error}`
    const name = [task.file, ...task.others].join(', ')
    return { task, name, counts, hasPassed: false, skips: [], ms: performance.now() - began, output }
  }
}

/** The sum of the counts of all results. */
export function sumCounts(results: readonly FileResult[]): Counts & { readonly failed: number } {
  const sum = (count: (counts: Counts) => number) => results.reduce((total, { counts }) => total + count(counts), 0)
  return {
    tests: sum(counts => counts.tests),
    passed: sum(counts => counts.passed),
    skipped: sum(counts => counts.skipped),
    todo: sum(counts => counts.todo),
    failed: sum(counts => counts.tests - counts.passed - counts.skipped - counts.todo),
  }
}
