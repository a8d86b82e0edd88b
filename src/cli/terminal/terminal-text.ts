import { withoutControls } from '../../main/terminal/plain-text.ts'

/**
 * Untrusted text, such as worker output, for a stream: without control characters for a terminal, unchanged for a file
 * or a pipe. Keeps line ends and tabs.
 */
export function textForStream(text: string, stream: { readonly isTTY?: boolean } = process.stdout): string {
  return stream.isTTY === true ? withoutControls(text) : text
}

/** Prints untrusted text, such as from workers and servers; see {@link textForStream}. */
export function printText(text: string, stream: NodeJS.WriteStream = process.stdout): void {
  stream.write(textForStream(text, stream))
}
