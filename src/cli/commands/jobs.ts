import type { Command } from 'commander'
import { agree, agreeToDelete, withYes, type YesOption } from '../client/agreeing.ts'
import { answerValue, jsonLine, pageItems } from '../client/answers.ts'
import { ask, type ConnectionOptions, wantsJson, withConnection } from '../client/connection.ts'
import { addNoSuchVerb, findEndpoint, type InsideOptions, withEndpoint } from '../client/locate.ts'
import { withEndpointName } from '../client/names.ts'
import { print, printList } from '../client/printing.ts'
import { CliError, EXIT } from '../exit.ts'
import { RESOURCE_COLUMNS } from '../terminal/resource-columns.ts'
import { type StoryAnswer, storyText } from '../terminal/story-text.ts'
import type { TableRow } from '../terminal/table.ts'
import { printText } from '../terminal/terminal-text.ts'
import { addJobList, changeMany, hasFilter, type ManyOptions, type ManyVerb, showJob, withMany } from './job-history.ts'
import { type SubmitOptions, submission, withInput, withSubmission } from './run.ts'

/** `runyard jobs list|get|create|cancel|retry|replay|story|webhooks|resend|purge|delete`. */
export function addJobs(program: Command): void {
  const group = program.command('jobs').description('list, show, submit and change jobs')
  addJobList(group)
  const creation = group.command('create').argument('<endpoint>', 'the id or the name of a queue endpoint')
  withConnection(withSubmission(creation)).description('submit a job and do not wait for it').action(create)
  const about = 'show one job, also without its result: times, attempts, error, input and output'
  onJob(group, 'get', about, showJob).alias('status')
  addChange(group, 'cancel', 'cancel a job that waits or runs, or all that a filter means')
  addChange(group, 'retry', 'queue a job again that failed or timed out, or all that a filter means')
  const replay = group.command('replay').argument('<job>', 'the id of a job, also of one without its result')
  withConnection(withInput(withEndpoint(replay)))
    .description('submit a new job with the input of an old one, or with another input')
    .action(async (id: string, options: InsideOptions & SubmitOptions) => {
      const path = `/v2/${await findEndpoint(options, 'job', id)}/requests/${encodeURIComponent(id)}/replay`
      const body = options.input === undefined ? {} : { body: submission(options) }
      printJob(options, await ask(options, path, { method: 'POST', ...body }))
    })
  onJob(group, 'story', 'print the history of a job: waits, starts, attempts, losses, its end, its webhook', showStory)
  onJob(group, 'webhooks', 'list the deliveries of the webhook of a job', async (options, path, id) => {
    const shown = await answerValue<TableRow>(await ask(options, `${path}/webhooks/${id}`))
    printList(options, pageItems<TableRow>(shown, 'deliveries'), RESOURCE_COLUMNS.deliveries, 'deliveries')
  })
  onJob(group, 'resend', 'send the webhook of a job again that was given up', async (options, path, id) => {
    const shown = await answerValue<TableRow>(await ask(options, `${path}/webhooks/${id}/send`, { method: 'POST' }))
    printList(options, pageItems<TableRow>(shown, 'deliveries'), RESOURCE_COLUMNS.deliveries, 'deliveries')
  })
  addPurge(group)
  onJob(group, 'delete', 'cancel a job if it is not done, and remove it with its output', remove)
  addNoSuchVerb(group, 'update', 'a job does not change once it is submitted; cancel it and submit another one')
}

type JobAction = (options: InsideOptions, path: string, id: string) => Promise<void>

/** Adds a verb on one job. The endpoint is optional: people may know only the job id. */
function onJob(group: Command, verb: string, description: string, act: JobAction): Command {
  const command = group.command(verb).argument('<job>', 'the id of a job')
  if (verb === 'delete') withYes(command.alias('rm'))
  return withConnection(withEndpoint(command))
    .description(description)
    .action(async (id: string, options: InsideOptions) =>
      act(options, `/v2/${await findEndpoint(options, 'job', id)}`, encodeURIComponent(id)),
    )
}

/** Adds `purge`, which asks on a terminal. */
function addPurge(group: Command): void {
  const purge = group.command('purge').argument('<endpoint>', 'the id or the name of a queue endpoint')
  withConnection(withYes(purge))
    .description('cancel all jobs that wait; running ones go on')
    .action(async (endpoint: string, options: ConnectionOptions & YesOption) =>
      withEndpointName(options, endpoint, async id => {
        const path = `/v2/${encodeURIComponent(id)}`
        const { jobs } = (await (await ask(options, `${path}/health`)).json()) as { jobs: { inQueue: number } }
        if (options.yes !== true) await agree(`${jobs.inQueue} waiting jobs will be cancelled; go on?`)
        const { removed } = (await (await ask(options, `${path}/purge-queue`, { method: 'POST' })).json()) as TableRow
        printText(wantsJson(options) ? `${JSON.stringify({ removed })}\n` : `${removed} jobs are cancelled\n`)
      }),
    )
}

/** Adds a change of one job, or of all jobs of an endpoint that a filter means. */
function addChange(group: Command, change: ManyVerb, description: string): void {
  const command = group.command(change).argument('<job or endpoint>', 'a job; or an endpoint, with a filter')
  withConnection(withMany(withEndpoint(command)))
    .description(description)
    .action(async (id: string, options: InsideOptions & ManyOptions) => {
      if (hasFilter(options)) return changeMany(options, id, change)
      const path = `/v2/${await findEndpoint(options, 'job', id)}/${change}/${encodeURIComponent(id)}`
      await printJob(options, await ask(options, path, { method: 'POST' }))
    })
}

async function create(endpoint: string, options: SubmitOptions): Promise<void> {
  const request = { method: 'POST', body: submission(options) }
  const submit = (id: string) => ask(options, `/v2/${encodeURIComponent(id)}/run`, request)
  printJob(options, await withEndpointName(options, endpoint, submit))
}

/** Removes a job with all that is kept of it. */
async function remove(options: InsideOptions & YesOption, path: string, id: string): Promise<void> {
  const { status } = (await (await ask(options, `${path}/requests/${id}`)).json()) as { status: string }
  const loss = status.startsWith('IN_') ? 'it is cancelled, and its' : 'its'
  await agreeToDelete(options, async () => `job ${id} is ${status}: ${loss} result and record will be deleted`)
  if (status.startsWith('IN_')) {
    await ask(options, `${path}/cancel/${id}`, { method: 'POST' }).catch((error: unknown) => {
      // The job may have ended in the meantime.
      if (!(error instanceof CliError && error.exitCode === EXIT.data)) throw error
    })
  }
  await ask(options, `${path}/requests/${id}`, { method: 'DELETE' })
  printText(wantsJson(options) ? `${JSON.stringify({ deleted: id })}\n` : `job ${id} is deleted\n`)
}

async function printJob(options: ConnectionOptions, answer: Response): Promise<void> {
  const job = await answerValue<{ id: string; status: string }>(answer)
  const more = job.status === 'IN_QUEUE' ? `; runyard jobs get ${job.id} shows its output once it has ended` : ''
  printText(wantsJson(options) ? `${jsonLine(job)}\n` : `job ${job.id} is ${job.status}${more}\n`)
}

/** Prints the story of a job. @param path of the job operations of its endpoint */
async function showStory(options: ConnectionOptions, path: string, id: string): Promise<void> {
  const answer = await ask(options, `${path}/requests/${id}/story`)
  if (wantsJson(options)) return print(options, answer)
  printText(storyText((await answer.json()) as StoryAnswer, Date.now()))
}
