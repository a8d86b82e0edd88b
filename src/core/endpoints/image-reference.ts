/** References of container images, as people write them: `python`, `me/worker:1`, `ghcr.io/me/worker@sha256:...`. */

/** A reference in its parts. */
export interface ImageReference {
  /** Host of the registry; `docker.io` if the text names none. */
  readonly registry: string
  /** Text in front of the tag and digest, as it was written. */
  readonly name: string
  /** Null if the text has no tag. */
  readonly tag: string | null
  readonly digest: string | null
}

const COMPONENT = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const HOST = '(?:[a-zA-Z0-9][a-zA-Z0-9.-]*|\\[[0-9a-fA-F:]+\\])(?::\\d+)?'
const REFERENCE = new RegExp(
  `^((?:(${HOST})/)?${COMPONENT}(?:/${COMPONENT})*)(?::([\\w][\\w.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$`,
)
const MAX_LENGTH = 512

/** The parts of a reference; null for an invalid one. */
export function parseReference(text: string): ImageReference | null {
  if (text.length > MAX_LENGTH) return null
  const parts = REFERENCE.exec(text)
  if (parts === null) return null
  const [, name = '', host, tag = null, digest = null] = parts
  // A first part without a dot, a colon or `localhost` is no host: `library/python` names no registry.
  const isHost = host !== undefined && (/[.:]/.test(host) || host === 'localhost')
  if (!isHost && /[A-Z]/.test(name)) return null
  return { registry: isHost ? host : 'docker.io', name, tag, digest }
}

/** True if a reference means the image that was published last under its name. */
export function isFloating({ tag, digest }: ImageReference): boolean {
  return digest === null && (tag === null || tag === 'latest')
}

/** True if two names mean the same repository: `python` is `docker.io/library/python`. */
export function sameRepository(a: string, b: string): boolean {
  return fullName(a) === fullName(b)
}

function fullName(name: string): string {
  const { registry } = parseReference(name) ?? { registry: 'docker.io' }
  if (registry !== 'docker.io') return name
  const path = name.replace(/^(?:index\.)?docker\.io\//, '')
  return `docker.io/${path.includes('/') ? path : `library/${path}`}`
}
