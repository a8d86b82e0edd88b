/** Python with the official SDK; tests that need it are skipped where it is not installed. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const WANTED = '1.12.0'
const SDK2_WANTED = '2.0.0rc2'
const OPENAI_WANTED = '3.52.0'
const LANGCHAIN_WANTED = '1.7.4'
const HUB_WANTED = '2.4.0'
const TRACES_WANTED = '1.45.2'

/** Path of a Python that has the SDK, or the reason of its absence. */
export const { python, skip } = findPython()

/** Reason why tests with the OpenAI client cannot run; false if they can. */
export const openAiSkip = skip === false ? packageProblem('openai', OPENAI_WANTED) : skip

/** Reason why tests with LangChain's client cannot run; false if they can. */
export const langChainSkip = openAiSkip === false ? packageProblem('langchain-openai', LANGCHAIN_WANTED) : openAiSkip

/** Reason why tests with the client of Hugging Face cannot run; false if they can. */
export const hubSkip = skip === false ? packageProblem('huggingface_hub', HUB_WANTED) : skip

/** Reason why tests that send traces cannot run; false if they can. */
export const tracesSkip =
  skip === false ? packageProblem('opentelemetry-exporter-otlp-proto-http', TRACES_WANTED) : skip

/** Older SDKs that workers may still have, in folders of these names below RUNYARD_TEST_SDKS. */
export const OLD_SDKS = [
  ...(['1.5.3', '1.6.0', '1.6.2', '1.7.0', '1.7.4'] as const),
  ...(['1.7.13', '1.8.1', '1.9.1', '1.10.0', '1.11.0'] as const),
]

/** Reason why the tests with older SDKs cannot run; false if they can. */
export const oldSdksSkip = skip === false ? oldSdksProblem() : skip

/** The folder of an older SDK. */
export function oldSdk(version: (typeof OLD_SDKS)[number]): string {
  return join(process.env.RUNYARD_TEST_SDKS ?? '', version)
}

/** The PYTHONPATH of a worker with an older SDK. */
export function oldSdkPath(version: (typeof OLD_SDKS)[number]): string {
  return `${oldSdk(version)}:${join(import.meta.dirname, '../fixtures/python-fastapi')}`
}

/** The path of a Python with SDK 2.0; it is no Python for other tests. */
export const sdk2 = process.env.RUNYARD_TEST_SDK2 ?? ''

/** Reason why tests with SDK 2.0 cannot run; false if they can. */
export const sdk2Skip = sdk2Problem()

function sdk2Problem(): string | false {
  if (sdk2 !== '' && packageVersion(sdk2, 'runpod') === SDK2_WANTED) return false
  const problem = `RUNYARD_TEST_SDK2 names no Python with runpod==${SDK2_WANTED}`
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

function oldSdksProblem(): string | false {
  const missing = OLD_SDKS.filter(version => !existsSync(join(oldSdk(version), 'runpod')))
  if (missing.length === 0) return false
  const problem = `RUNYARD_TEST_SDKS names no folder with ${missing.map(version => `${version}/runpod`).join(', ')}`
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

function packageProblem(name: string, wanted: string): string | false {
  const problem = `RUNYARD_TEST_PYTHON has no ${name}==${wanted}`
  if (packageVersion(python, name) === wanted) return false
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return problem
}

function findPython(): { python: string; skip: string | false } {
  const path = process.env.RUNYARD_TEST_PYTHON ?? ''
  const problem = path === '' ? `RUNYARD_TEST_PYTHON names no Python with runpod==${WANTED}` : pythonProblem(path)
  if (problem === null) return { python: path, skip: false }
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return { python: '', skip: problem }
}

function pythonProblem(path: string): string | null {
  const version = packageVersion(path, 'runpod')
  if (version === null) return `RUNYARD_TEST_PYTHON is ${path}, which cannot be run or has no runpod==${WANTED}`
  return version === WANTED ? null : `RUNYARD_TEST_PYTHON has runpod ${version}, these tests are for ${WANTED}`
}

function packageVersion(path: string, module: string): string | null {
  const script = `from importlib.metadata import version; print(version("${module}"))`
  try {
    return execFileSync(path, ['-c', script], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}
