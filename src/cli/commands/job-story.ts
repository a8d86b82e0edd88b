import { ask, type ConnectionOptions, wantsJson } from '../client/connection.ts'
import { print } from '../client/printing.ts'
import { storyText, type ToldStory } from '../terminal/story-text.ts'
import { printText } from '../terminal/terminal-text.ts'

/** Tells what happened to a job. @param path of the job operations of its endpoint */
export async function showStory(options: ConnectionOptions, path: string, id: string): Promise<void> {
  const answer = await ask(options, `${path}/requests/${id}/story`)
  if (wantsJson(options)) return print(options, answer)
  printText(storyText((await answer.json()) as ToldStory, Date.now()))
}
