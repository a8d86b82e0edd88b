import { stripVTControlCharacters } from 'node:util'

/**
 * Untrusted text, such as worker output, for a stream: without control characters for a terminal, unchanged for a file or
 * a pipe. Keeps line ends and tabs.
 */
export function forStream(text: string, stream: { readonly isTTY?: boolean } = process.stdout): string {
  return stream.isTTY === true ? withoutControls(text) : text
}

/** Prints untrusted text, such as from workers and servers; see {@link forStream}. */
export function printText(text: string, stream: NodeJS.WriteStream = process.stdout): void {
  stream.write(forStream(text, stream))
}

/** Text without terminal control characters. Keeps line ends and tabs. */
export function withoutControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are removed here.
  return stripVTControlCharacters(text).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
}
