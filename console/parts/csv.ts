/** Tables as files. */

/** Rows as CSV (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe before it. */
export function csv(rows: readonly (readonly (string | number | null)[])[]): string {
  return rows.map(row => `${row.map(field).join(',')}\r\n`).join('')
}

function field(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Offers the browser a text as a file for download. */
export function download(name: string, text: string, type = 'text/csv'): void {
  saveBlob(name, new Blob([text], { type }))
}

/** Offers the browser bytes as a file for download. */
export function saveBlob(name: string, blob: Blob): void {
  const address = URL.createObjectURL(blob)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // Some browsers read the address only later.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
