/** Patterns of bodies: JSON with words such as `<int>` in place of some values. */

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'

const WORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  int: value => Number.isSafeInteger(value) && (value as number) >= 0,
  'run-id': value => typeof value === 'string' && new RegExp(`^${UUID}-u1$`).test(value),
  'sync-id': value => typeof value === 'string' && new RegExp(`^sync-${UUID}-u1$`).test(value),
  worker: value => typeof value === 'string' && /^[a-z0-9]+$/.test(value),
  sentence: value => typeof value === 'string' && / /.test(value),
  'not-for-lb': value =>
    typeof value === 'string' && /^not allowed for LB API: .*; its address is https?:\/\/\S+$/.test(value),
  'no-operation': value =>
    typeof value === 'string' && /^there is no such operation of a queue; .* below https?:\/\/\S+$/.test(value),
  secret: value => typeof value === 'string' && /^whsec_[A-Za-z0-9+/]+=*$/.test(value),
  instant: value => typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value),
}

/** First difference of a JSON text from the pattern, as a sentence; null if it matches. */
export function mismatch(pattern: string, text: string): string | null {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return `the body is not JSON: ${text}`
  }
  const wanted: unknown = JSON.parse(pattern.replaceAll(/(?<=[[:,]\s*)<([a-z-]+)>/g, '"<$1>"'))
  return compare(wanted, found, 'the body')
}

function compare(wanted: unknown, found: unknown, where: string): string | null {
  const word = typeof wanted === 'string' ? /^<([a-z-]+)>$/.exec(wanted)?.[1] : undefined
  if (word !== undefined) {
    const fits = WORDS[word]
    if (fits === undefined) throw new Error(`the pattern has an unknown word <${word}>`)
    return fits(found) ? null : `${where} is ${JSON.stringify(found)}, not <${word}>`
  }
  if (typeof wanted !== 'object' || wanted === null || typeof found !== 'object' || found === null) {
    return wanted === found ? null : `${where} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`
  }
  const names = [wanted, found].map(value => `${Array.isArray(value) ? 'a list of' : 'members'} ${keys(value)}`)
  if (names[0] !== names[1]) return `${where} has ${names[1]}, not ${names[0]}`
  for (const [name, value] of Object.entries(wanted)) {
    const problem = compare(value, (found as Record<string, unknown>)[name], `${where}.${name}`)
    if (problem !== null) return problem
  }
  return null
}

function keys(value: object): string {
  return Object.keys(value).sort().join(', ')
}
