import { parseArgs } from 'node:util'

/** Options of the command line, named as in RunPod's SDK for Python. */
export type Arguments = {
  /** JSON of a job to run once. */
  testInput: string | undefined
  logLevel: string | undefined
  /** Address on which the job operations are served; undefined if they are not served. */
  api: { host: string; port: number; concurrency: number | undefined } | undefined
}

const text = { type: 'string' } as const
const options = {
  test_input: text,
  rp_log_level: text,
  rp_serve_api: { type: 'boolean' },
  rp_api_host: text,
  rp_api_port: text,
  rp_api_concurrency: text,
} as const

/** Reads the arguments; unknown ones belong to the handler. Throws an `Error` for an invalid value. */
export function readArguments(argv: string[]): Arguments {
  const { values } = parseArgs({ args: argv, options, strict: false, allowPositionals: true })
  const readText = (name: keyof typeof options) => {
    const value = values[name]
    if (value === true) throw new Error(`--${name} needs a value`)
    return value === undefined ? undefined : String(value)
  }
  const readWhole = (name: keyof typeof options, least: number, most: number) => {
    const value = readText(name)
    if (value === undefined) return undefined
    const isUsable = /^\d+$/.test(value) && Number(value) >= least && Number(value) <= most
    if (!isUsable) throw new Error(`--${name} must be a whole number from ${least} to ${most}, not "${value}"`)
    return Number(value)
  }
  const host = readText('rp_api_host') ?? 'localhost'
  const port = readWhole('rp_api_port', 0, 65_535) ?? 8000
  const concurrency = readWhole('rp_api_concurrency', 1, 1000)
  return {
    testInput: readText('test_input'),
    logLevel: readText('rp_log_level'),
    api: values.rp_serve_api ? { host, port, concurrency } : undefined,
  }
}
