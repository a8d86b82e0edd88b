import { existsSync, readFileSync } from 'node:fs'
import { encodeFailure, encodeResult, errorIn, type Final, isStream } from './result.ts'
import type { Context, Job, StartOptions } from './types.ts'
import { checkInput } from './validate.ts'

const help = `No job to run. A platform sets RUNPOD_WEBHOOK_GET_JOB; to try the handler here, give it one job:
  node handler.mjs --test_input '{"input": {"name": "Ada"}}'
or put the same JSON into test_input.json in this folder.`

/**
 * Runs one job without a platform, the one of `--test_input` or of test_input.json, and prints its final post as JSON
 * on stdout (progress goes to stderr). Resolves to the exit code: 0, or 1 if the job failed or does not exist.
 */
export async function runLocally(options: StartOptions, testInput: string | undefined): Promise<number> {
  let job: Job
  try {
    job = readJob(testInput)
  } catch (error) {
    console.error(error instanceof Error ? error.message : error)
    return 1
  }
  const { text, failed } = await runOnce(options, job)
  console.log(text)
  return failed ? 1 : 0
}

function readJob(testInput: string | undefined): Job {
  const text = testInput ?? fileText('test_input.json')
  if (text === undefined) throw new Error(help)
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    throw new Error(`the test input is not JSON: ${error instanceof Error ? error.message : error}`)
  }
  if (typeof parsed !== 'object' || parsed === null || !('input' in parsed)) {
    throw new Error('the test input has no "input": write {"input": ...}')
  }
  return { id: 'local_test', ...parsed }
}

function fileText(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

async function runOnce(options: StartOptions, job: Job): Promise<Final> {
  const context: Context = {
    signal: new AbortController().signal,
    progress: async value => console.error('progress:', value),
  }
  try {
    const value = await options.handler(await checkInput(job, options.inputSchema), context)
    if (!isStream(value)) return encodeResult(value, false)
    const chunks: unknown[] = []
    for await (const chunk of value) {
      const error = errorIn(chunk)
      if (error) return encodeResult({ error }, false)
      chunks.push(chunk)
    }
    return encodeResult(chunks, false)
  } catch (error) {
    return encodeFailure(error, false, { workerId: 'unknown', hostname: 'unknown' })
  }
}
