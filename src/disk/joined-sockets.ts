import type { Socket } from 'node:net'

/** Joins two connections: each direction ends by itself, and a break of one side breaks the other. */
export function joinSockets(first: Socket, second: Socket): void {
  for (const [source, target] of [
    [first, second],
    [second, first],
  ] as const) {
    source.on('error', () => {})
    source.on('close', hadError => {
      if (hadError || !source.readableEnded) target.destroy()
    })
    source.pipe(target)
  }
  if (first.destroyed) second.destroy()
}
