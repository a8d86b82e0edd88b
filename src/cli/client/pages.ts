import { answerValue, pageItems } from './answers.ts'
import { ask, type ConnectionOptions } from './connection.ts'

/** All items of a list, page by page. */
export async function pages(options: ConnectionOptions, path: string, wrapper: string): Promise<Item[]> {
  const rows: Item[] = []
  for (let cursor: string | null = null; ; ) {
    const query: string = cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`
    const page = await answerValue<Record<string, unknown>>(await ask(options, `${path}${query}`))
    rows.push(...pageItems<Item>(page, wrapper))
    cursor = (page.pagination as { nextCursor: string | null } | undefined)?.nextCursor ?? null
    if (cursor === null) return rows
  }
}

/** An item as the server shows it. */
type Item = Readonly<Record<string, unknown>>
