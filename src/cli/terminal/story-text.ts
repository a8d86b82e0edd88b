import { durationText, onOneLine } from './table.ts'

/** The story of a job as the server sends it. */
export interface StoryAnswer {
  readonly id: string
  readonly status: string
  readonly events: readonly { readonly at: number; readonly until: number | null; readonly text: string }[]
}

/** Characters of the durations, such as `59m59s`. */
const WIDTH = 6

/**
 * A story for people: one line for each event, with its time in UTC and its duration, so far if it goes on.
 * Future entries come last, with the time until then.
 */
export function storyText({ id, status, events }: StoryAnswer, nowMs: number): string {
  const lines = events.map(({ at, until, text }) => {
    const time = new Date(at).toISOString().slice(0, 23).replace('T', ' ')
    const words = at > nowMs ? `in ${durationText(at - nowMs)}: ${onOneLine(text)}` : onOneLine(text)
    const took = until === at || at > nowMs ? '' : durationText((until ?? nowMs) - at)
    return `${time}  ${took.padStart(WIDTH)}  ${words}\n`
  })
  return [`job ${id} is ${status}\n`, ...lines].join('')
}
