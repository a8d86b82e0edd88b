/** The call of a form as a command. */

/** A command for a shell that makes a call with the key in `RUNYARD_API_KEY`. */
export function curlCommand(method: string, url: string, body: unknown): string {
  return [
    `curl -X ${method} ${quoted(url)}`,
    `-H "Authorization: Bearer $RUNYARD_API_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d ${quoted(JSON.stringify(body, null, 2))}`,
  ].join(' \\\n  ')
}

/** A text as one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
