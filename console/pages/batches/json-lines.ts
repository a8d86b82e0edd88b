/** Requests of a batch as people write them: a JSON object on each line, or a JSON array. */

/** Limits of one call, as the reference of batches has them. */
export const CALL = { bytes: 10 * 1024 * 1024, requests: 5_000 } as const

const MAX_NAMED = 20
const SHAPE = 'must be a JSON object with an "input" object'

/** Content of a text. */
export interface Lines {
  /** The requests as a JSON array, with the original text of each. */
  readonly array: string
  readonly count: number
  /** One sentence for each invalid line, the first few of them. */
  readonly problems: readonly string[]
  /** Names the request at an index, such as `line 7`. */
  readonly requestName: (index: number) => string
}

/** Reads requests, and reports the problem of each invalid line. */
export function readLines(text: string): Lines {
  if (text.length > CALL.bytes) {
    return checkedLines(
      '[]',
      0,
      ['the requests have more than 10 MiB; create a draft with some of them and add the rest to it'],
      String,
    )
  }
  return text.trimStart().startsWith('[') ? readArray(text) : readEachLine(text)
}

function readEachLine(text: string): Lines {
  const requests: { readonly text: string; readonly line: number }[] = []
  const problems: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const trimmed = line.replace(/^\ufeff/, '').trim()
    if (trimmed === '') continue
    requests.push({ text: trimmed, line: index + 1 })
    const problem = lineProblem(trimmed)
    if (problem !== null) problems.push(`line ${index + 1}: ${problem}`)
  }
  return checkedLines(
    `[${requests.map(one => one.text).join(',')}]`,
    requests.length,
    problems,
    at => `line ${requests[at]?.line}`,
  )
}

function readArray(text: string): Lines {
  const requestName = (index: number) => `request ${index + 1}`
  try {
    const all = JSON.parse(text) as unknown[]
    const problems = all.flatMap((one, index) => (isRequest(one) ? [] : [`${requestName(index)}: ${SHAPE}`]))
    return checkedLines(text.trim(), all.length, problems, requestName)
  } catch (error) {
    return checkedLines('[]', 0, [`the array is not JSON: ${(error as Error).message}`], requestName)
  }
}

function checkedLines(
  array: string,
  count: number,
  problems: readonly string[],
  requestName: Lines['requestName'],
): Lines {
  const limits = [...(count > CALL.requests ? [`there are ${count} requests; a batch may have ${CALL.requests}`] : [])]
  const unnamedCount = problems.length - MAX_NAMED
  const shownProblems = [
    ...problems.slice(0, MAX_NAMED),
    ...(unnamedCount > 0 ? [`and ${unnamedCount} more like these`] : []),
  ]
  return { array, count, problems: [...limits, ...shownProblems], requestName }
}

function lineProblem(line: string): string | null {
  try {
    return isRequest(JSON.parse(line)) ? null : SHAPE
  } catch (error) {
    return `is not JSON: ${(error as Error).message}`
  }
}

function isRequest(value: unknown): boolean {
  return isObject(value) && isObject(value.input)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A problem from the server, with lines in place of its indexes. */
export function withLines(sentence: string, { requestName }: Pick<Lines, 'requestName'>): string {
  return sentence.replaceAll(/(?:requests)?\[(\d+)\](?=:)/g, (_, index: string) => requestName(Number(index)))
}
