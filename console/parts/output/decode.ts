/** The bytes of files within outputs. */
import { type FoundFile, plainBase64 } from './detect.ts'

/** Number of characters that are decoded at once: about two milliseconds. */
const AT_ONCE = 512 * 1024

/** The turn of other work of the page. */
function nextTurn(): Promise<void> {
  return new Promise(resolve => setTimeout(resolve))
}

/**
 * The bytes of a file, decoded once and in pieces, so that the page answers meanwhile.
 * @throws Error if the text is not what its beginning says
 */
export async function decodeFile(file: FoundFile, signal?: AbortSignal): Promise<Blob> {
  const { text, from, form } = file
  if (form === 'plain') return new Blob([text], { type: file.type })
  if (form === 'escaped') return new Blob([unescaped(text.slice(from))], { type: file.type })
  const pieces: Uint8Array<ArrayBuffer>[] = []
  let rest = ''
  for (let at = from; at < text.length; at += AT_ONCE) {
    if (at > from) await nextTurn()
    signal?.throwIfAborted()
    const letters = rest + text.slice(at, at + AT_ONCE).replaceAll(/\s/g, '')
    const whole = at + AT_ONCE >= text.length ? letters.length : letters.length - (letters.length % 4)
    rest = letters.slice(whole)
    pieces.push(decoded(letters.slice(0, whole)))
  }
  return new Blob(pieces, { type: file.type })
}

function decoded(base64: string): Uint8Array<ArrayBuffer> {
  let bytes: string
  try {
    bytes = atob(plainBase64(base64))
  } catch {
    throw new Error('The text begins as a file, and is not base64 to its end.')
  }
  const array = new Uint8Array(bytes.length)
  for (let at = 0; at < bytes.length; at += 1) array[at] = bytes.charCodeAt(at)
  return array
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address of an SVG for an `img`: an address with an origin of its own, where nothing of it can run. */
export function svgAddress({ text, from, form }: FoundFile): string {
  if (form === 'base64') return `data:image/svg+xml;base64,${plainBase64(text.slice(from))}`
  return `data:image/svg+xml,${form === 'plain' ? encodeURIComponent(text) : text.slice(from)}`
}
