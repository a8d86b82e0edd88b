import { readArguments } from './arguments.ts'
import { readConfig } from './config.ts'
import { closeFitnessChecks, runFitnessChecks } from './fitness.ts'
import { captureConsole, log, setLevel } from './log.ts'
import { checkOptions } from './options.ts'
import type { StartOptions } from './types.ts'
import { Worker } from './worker.ts'

let started = false

/**
 * Turns this process into a worker: runs the fitness checks, takes jobs, runs them through `handler`, delivers their
 * results. On SIGTERM or SIGINT it finishes its jobs and exits with 0; a second signal exits at once. Without a
 * platform around it (`RUNPOD_WEBHOOK_GET_JOB` is unset) it runs one job from `--test_input '<json>'` or
 * `test_input.json`, prints the result and exits with 0, or with 1 if the job failed; with `--rp_serve_api` it serves
 * the job operations for development. Rejects with a `TypeError` for invalid options and with an `Error` if it is
 * called twice, for invalid arguments, or if the environment is incomplete.
 */
export async function start<Input = unknown, Output = unknown>(options: StartOptions<Input, Output>): Promise<void> {
  // The platform decides the input of a job; the type parameter is the caller's statement about it.
  const untyped = options as StartOptions
  checkOptions(untyped)
  if (started) throw new Error('start was already called')
  started = true
  closeFitnessChecks()
  const { testInput, logLevel, api } = readArguments(process.argv.slice(2))
  setLevel(logLevel)
  if (api) {
    const { serveApi } = await import('./serve-api.ts')
    return serveApi(untyped, api)
  }
  if (testInput !== undefined || !process.env.RUNPOD_WEBHOOK_GET_JOB) {
    const { runLocally } = await import('./local.ts')
    process.exit(await runLocally(untyped, testInput))
  }
  await work(untyped)
}

async function work(options: StartOptions): Promise<never> {
  const config = readConfig(process.env)
  const worker = new Worker(config, options)
  captureConsole()
  obeySignals(worker)
  if (!(await runFitnessChecks(config))) process.exit(1)
  await worker.run()
  process.exit(0)
}

function obeySignals(worker: Worker): void {
  const codes = { SIGINT: 130, SIGTERM: 143 } as const
  let signalled = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (signalled) process.exit(codes[signal])
      signalled = true
      log(`${signal}: finishing the jobs at hand, then exiting`, { job: null })
      worker.drain()
    })
  }
}
