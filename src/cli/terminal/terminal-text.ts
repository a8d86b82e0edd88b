import { stripVTControlCharacters } from 'node:util'

/**
 * A text of somebody else, such as what a worker prints, as it may be written to a stream: without what could steer a terminal where that
 * is one, and as it is where it is a file or a pipe. Line ends and tabs stay.
 */
export function forStream(text: string, stream: { readonly isTTY?: boolean } = process.stdout): string {
  return stream.isTTY === true ? withoutControls(text) : text
}

/** Prints a text that others may have had a hand in, such as workers and servers; see {@link forStream}. */
export function printText(text: string, stream: NodeJS.WriteStream = process.stdout): void {
  stream.write(forStream(text, stream))
}

/** A text without what could steer a terminal, but line ends and tabs. */
export function withoutControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
  return stripVTControlCharacters(text).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
