/** Tests of a worker in the format of RunPod's hub: `.runpod/tests.json` in its folder. */

import { JsonText } from '../core/json/json-format.ts'
import { elementTexts, memberTexts } from '../core/json/json-text.ts'

/** One test: a job, which passes if it completes. */
export interface HubTest {
  readonly name: string
  readonly input: JsonText
  /** Execution timeout in milliseconds; null for that of the endpoint. */
  readonly timeoutMs: number | null
}

/** Content of a test file, without hardware requirements: tests run on this machine. */
export interface HubTests {
  readonly tests: readonly HubTest[]
  /** Environment variables of the worker. */
  readonly env: Readonly<Record<string, string>>
}

const NO_INPUT = new JsonText('null')
const MAX_TESTS = 1_000
const MAX_MS = 7 * 86_400_000

/** Parses a test file. @returns its content, or all its problems */
export function readHubTests(text: string): HubTests | { readonly mistakes: readonly string[] } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    return { mistakes: [`it is not JSON: ${(error as Error).message}`] }
  }
  if (!isRecord(parsed)) return { mistakes: ['it must be an object with "tests"'] }
  const mistakes: string[] = []
  const tests = readTests(parsed.tests, mistakes, readInputs(text, parsed.tests))
  const env = readEnv(parsed.config ?? {}, mistakes)
  return mistakes.length > 0 ? { mistakes } : { tests, env }
}

/** The input of each test in the text of the file; undefined where it has none. */
function readInputs(text: string, list: unknown): readonly (JsonText | undefined)[] {
  if (!Array.isArray(list)) return []
  return elementTexts(memberTexts(text).get('tests')!).map(test => new JsonText(test).members()?.get('input'))
}

function readTests(list: unknown, mistakes: string[], inputs: readonly (JsonText | undefined)[]): HubTest[] {
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_TESTS) {
    mistakes.push(`tests must be a list of 1 to ${MAX_TESTS} tests`)
    return []
  }
  const places = new Map<string, number>()
  return list.map((test: unknown, index) => {
    const at = `tests[${index}]`
    if (!isRecord(test)) {
      mistakes.push(`${at} must be an object`)
      return { name: '', input: NO_INPUT, timeoutMs: null }
    }
    const name = readName(test.name, at, mistakes)
    const first = places.get(name)
    if (name !== '' && first !== undefined) mistakes.push(`${at}.name is that of tests[${first}] too`)
    places.set(name, first ?? index)
    const input = inputs[index]
    if (input === undefined) mistakes.push(`${at}.input is missing`)
    return { name, input: input ?? NO_INPUT, timeoutMs: readTimeout(test.timeout, at, mistakes) }
  })
}

function readName(name: unknown, at: string, mistakes: string[]): string {
  if (typeof name === 'string' && name.trim() !== '' && name.length <= 256) return name
  mistakes.push(`${at}.name must be a text of 1 to 256 characters`)
  return ''
}

function readTimeout(timeout: unknown, at: string, mistakes: string[]): number | null {
  if (timeout === undefined || timeout === null) return null
  if (Number.isInteger(timeout) && Number(timeout) >= 1 && Number(timeout) <= MAX_MS) return Number(timeout)
  mistakes.push(`${at}.timeout must be a whole number of milliseconds from 1 to ${MAX_MS}`)
  return null
}

function readEnv(config: unknown, mistakes: string[]): Record<string, string> {
  if (!isRecord(config)) {
    mistakes.push('config must be an object')
    return {}
  }
  const list = config.env ?? []
  if (!Array.isArray(list)) {
    mistakes.push('config.env must be a list of {"key", "value"}')
    return {}
  }
  const env = new Map<string, string>()
  for (const [index, entry] of list.entries()) {
    const { key, value } = isRecord(entry) ? entry : {}
    const isKey = typeof key === 'string' && /^[^\s=]{1,256}$/.test(key)
    if (isKey && typeof value === 'string') env.set(key, value)
    else mistakes.push(`config.env[${index}] must have a "key" that names a variable, and a text as its "value"`)
  }
  return Object.fromEntries(env)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
