/** What the texts of settings must be. Each check gives the rest of a sentence behind the setting's name; null when all is well. */

/** What is wrong with a text; null when nothing is. */
export type Check = (text: string) => string | null

/** A whole number between two, which are both allowed. */
export function wholeNumber(min: number, max: number): Check {
  return text =>
    /^\d+$/.test(text) && Number(text) >= min && Number(text) <= max
      ? null
      : `must be a whole number from ${min} to ${max}`
}

/** One of these words. */
export function oneOf(words: readonly string[]): Check {
  return text => (words.includes(text) ? null : `must be one of ${words.join(', ')}`)
}

/** Any text but the empty one. */
export function notEmpty(text: string): string | null {
  return text === '' ? 'must not be empty' : null
}

/** Where a container engine is, or a word in its place. */
export function engineAddress(text: string): string | null {
  return /^(?:auto|off|(?:unix|npipe):\/\/\/.+|(?:tcp|https?):\/\/[^/?#\s]+\/?)$/.test(text)
    ? null
    : 'must be auto, off, or an address such as unix:///var/run/docker.sock or tcp://host:2375'
}

/** An IPv4 address or a host name. */
export function hostName(text: string): string | null {
  return /^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text) ? null : 'must be an IPv4 address or a host name'
}

/** An origin of HTTP. */
export function httpUrl(text: string): string | null {
  return /^https?:\/\/[^/?#]+\/?$/.test(text) && URL.canParse(text)
    ? null
    : 'must be an http or https origin without a path'
}

/** The address of a PostgreSQL. */
export function postgresUrl(text: string): string | null {
  return /^postgres(?:ql)?:\/\/[^\s/?#]+\/[^\s/?#]+(?:\?\S*)?$/.test(text) && URL.canParse(text)
    ? null
    : 'must be like postgres://user:password@host:5432/database'
}
