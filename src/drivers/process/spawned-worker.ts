/** The process of a worker: in a cage, or as the program itself. */
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, writeSync } from 'node:fs'
import { WorkerStartError } from '../../core/workers/start-failure.ts'
import type { Launch } from './process-worker.ts'

/**
 * Starts the process of a worker, which leads a group of its own. Closes the files that it gets.
 * @param output a file for what it prints
 * @returns a child without a pid where it could not be started, whose `error` says why
 * @throws WorkerStartError when a word or a variable cannot be passed on
 */
export function spawnWorker({ command, marked, folder, env, cage, notes }: Launch, output: number): ChildProcess {
  try {
    for (const note of notes) writeSync(output, `runyard: ${note}\n`)
    if (cage === null)
      return spawn(marked.program, marked.words, {
        cwd: folder,
        env,
        detached: true,
        stdio: ['ignore', output, output],
      })
    const { program, words, options, filter, attach } = cage
    const stdio = ['ignore', output, output, options, filter ?? 'ignore', attach === null ? 'ignore' : 'pipe'] as const
    return spawn(program, words, { cwd: '/', env: cage.env, detached: true, stdio: [...stdio] })
  } catch (cause) {
    // The message is not shown because it quotes the variable, which may be a secret.
    throw new WorkerStartError({ kind: 'null_character', name: command.words[0] ?? '' }, { cause })
  } finally {
    closeSync(output)
    for (const file of [cage?.options, cage?.filter]) if (typeof file === 'number') closeSync(file)
  }
}
