/** What the table of settings is made of. Each check gives the rest of a sentence behind the name of a setting; null when all is well. */

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

/** A factor of overcommitment. */
export function factor(text: string): string | null {
  const isNumber = /^\d+(\.\d+)?$/.test(text)
  return isNumber && Number(text) >= 1 && Number(text) <= 100 ? null : 'must be a number from 1 to 100'
}

/** One setting. `read` gives the value, or says what is wrong with the text in a sentence that follows the option. */
export interface Setting {
  readonly flag: string
  readonly variable: string
  readonly argument: string | null
  readonly many?: true
  /** What is between several in the variable; a colon where nothing else is said. */
  readonly separator?: string
  /** Its value is never repeated. */
  readonly secret?: true
  /** Why a text may not stand in arguments, which everybody on the machine can read; null when it may. */
  readonly exposes?: Check
  readonly fallback: string | null
  readonly help: string
  readonly check: Check
}

/** A setting with a value. */
export function setting(
  flag: string,
  variable: string,
  argument: string,
  fallback: string | null,
  help: string,
  check: Check,
): Setting {
  return { flag, variable, argument, fallback, help, check }
}

/** One that may be given several times. */
export function many(single: Setting): Setting {
  return { ...single, many: true }
}

/** One that is on or off, off by default. */
export function flag(name: string, variable: string, help: string): Setting {
  return { flag: name, variable, argument: null, fallback: 'false', help, check: oneOf(['true', 'false']) }
}
