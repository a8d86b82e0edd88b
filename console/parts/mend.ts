/** What mends each cause of a wait: one main action, and others beside it. Decisions only; `why.tsx` shows them and carries them out. */
import type { Endpoint, EndpointExplanation, EndpointOverview, UpdateEndpointRequest } from '../client/api-types.d.ts'

/** Why something waits or is wrong, as the server says it. */
export type Cause = NonNullable<EndpointOverview['why']>['cause']

/** The part of an explanation that decides. */
export interface Explained extends Pick<EndpointExplanation, 'cause' | 'summary' | 'action'> {
  readonly commands: readonly string[]
  readonly notes: readonly string[]
}

/** A setting that changes, for people. */
export interface Change {
  readonly name: string
  readonly from: string
  readonly to: string
}

/** One action. Its title says exactly what it does. */
export type Mend =
  | {
      readonly kind: 'patch'
      readonly title: string
      readonly changes: readonly Change[]
      readonly body: UpdateEndpointRequest
      /** Whether workers are replaced for it. */
      readonly isRelease: boolean
    }
  | { readonly kind: 'rollback' | 'promote'; readonly title: string; readonly version: number }
  | { readonly kind: 'restart'; readonly title: string }
  | { readonly kind: 'link'; readonly title: string; readonly href: string; readonly needs: Needs }

/** What a key has to be allowed to do, so that a link leads to something that it may use. */
export type Needs = 'read' | 'write' | 'operate'

/** What is known of the endpoint. Members are null until they have been read, or where the key may not read them. */
export interface MendFacts {
  readonly id: string
  readonly explained: Explained
  readonly endpoint: Pick<Endpoint, 'workers' | 'scaling' | 'env'> | null
  readonly releases: Releases | null
}

/** Versions of releases and how far the newest is. */
export interface Releases {
  readonly rollout: { readonly state: string; readonly workingVersion: number | null }
  /** Newest first. */
  readonly releases: readonly {
    readonly version: number | null
    readonly restoredVersion: number | null
    readonly diff: readonly { readonly field: string; readonly old: unknown; readonly new: unknown }[]
  }[]
}

/** How a cause looks: something to mend, a wait that somebody may shorten, work under way, or nothing. */
export type CauseTone = 'bad' | 'wait' | 'busy' | 'good'

interface Decision {
  /** The cause in a few words. */
  readonly title: string
  readonly tone: CauseTone
  /** The actions, the main one first; none where waiting is all that there is to do. */
  readonly mends: (facts: MendFacts) => readonly (Mend | null)[]
}

const nothing = () => []

/** The decision for each cause. */
export const DECISIONS: Readonly<Record<Cause, Decision>> = {
  nothing_waits: { title: 'Nothing waits', tone: 'good', mends: nothing },
  finished: { title: 'Finished', tone: 'good', mends: nothing },
  running: { title: 'Workers work', tone: 'busy', mends: facts => [sooner(facts)] },
  store_damaged: {
    title: 'The database is damaged',
    tone: 'bad',
    mends: () => [machine('See what is wrong with the machine')],
  },
  store_full: {
    title: 'The disk of the database is full',
    tone: 'bad',
    mends: () => [machine('See the disk of the machine')],
  },
  about_to_start: { title: 'A worker is about to start', tone: 'busy', mends: nothing },
  paused: { title: 'Paused', tone: 'wait', mends: facts => [moreWorkers(facts)] },
  image_error: {
    title: 'The image cannot be started',
    tone: 'bad',
    mends: facts => [...imageLinks(facts), rollback(facts), restart(TRY_AGAIN)],
  },
  model_error: {
    title: 'A model cannot be had',
    tone: 'bad',
    mends: facts => [...modelLinks(facts), rollback(facts), restart(TRY_AGAIN)],
  },
  engine_away: {
    title: 'The container engine is away',
    tone: 'bad',
    mends: () => [machine('See what is wrong with the machine'), restart(TRY_AGAIN)],
  },
  secret_missing: {
    title: 'A secret is missing',
    tone: 'bad',
    mends: facts => [...secretLinks(facts), rollback(facts), environment(facts)],
  },
  volume_missing: {
    title: 'A volume is missing',
    tone: 'bad',
    mends: facts => [
      settings(facts, 'volumes', 'Choose another volume'),
      link('/volumes', 'Create a volume'),
      rollback(facts),
    ],
  },
  settings_invalid: {
    title: 'A setting is invalid',
    tone: 'bad',
    mends: facts => [environment(facts), link('/secrets', 'Change a secret'), rollback(facts)],
  },
  crash_loop: {
    title: 'Workers crash',
    tone: 'bad',
    mends: facts => [rollback(facts), restart(TRY_AGAIN), logs(facts), settings(facts, 'image', 'Change the image')],
  },
  out_of_memory: {
    title: 'Workers run out of memory',
    tone: 'bad',
    mends: facts => [settings(facts, 'hardware', 'Give workers more memory'), rollback(facts), restart(TRY_AGAIN)],
  },
  fitness_failed: {
    title: 'A fitness check fails',
    tone: 'bad',
    mends: facts => [rollback(facts), restart(TRY_AGAIN), logs(facts)],
  },
  hung_start: {
    title: 'Workers do not finish their start',
    tone: 'bad',
    mends: facts => [longerStart(facts), rollback(facts), restart(TRY_AGAIN), logs(facts)],
  },
  unhealthy: {
    title: 'A worker is unhealthy',
    tone: 'bad',
    mends: facts => [restart('Replace the workers now'), rollback(facts), logs(facts)],
  },
  never_healthy: {
    title: 'Workers never get healthy',
    tone: 'bad',
    mends: facts => [
      settings(facts, 'env', 'Change the port or the health check'),
      rollback(facts),
      restart(TRY_AGAIN),
      logs(facts),
    ],
  },
  models_downloading: { title: 'Models are downloaded', tone: 'busy', mends: nothing },
  worker_starting: { title: 'A worker starts', tone: 'busy', mends: facts => [logs(facts)] },
  worker_restarting: { title: 'Old workers finish first', tone: 'busy', mends: facts => [moreWorkers(facts)] },
  max_reached: { title: 'All allowed workers are busy', tone: 'wait', mends: facts => [moreWorkers(facts)] },
  no_capacity: { title: 'No room for a worker', tone: 'wait', mends: placeLinks },
  throttled: { title: 'No room for more workers', tone: 'wait', mends: placeLinks },
  unschedulable: {
    title: 'No such node in the cluster',
    tone: 'wait',
    mends: facts => [settings(facts, 'hardware', 'Choose other hardware')],
  },
  cluster_quota: {
    title: 'A quota of the cluster is reached',
    tone: 'wait',
    mends: facts => [settings(facts, 'hardware', 'Ask for less hardware')],
  },
  cluster_away: {
    title: 'The cluster does not respond',
    tone: 'bad',
    mends: () => [machine('See what is wrong'), restart(TRY_AGAIN)],
  },
  volume_pending: {
    title: 'A volume is not there yet',
    tone: 'wait',
    mends: facts => [settings(facts, 'volumes', 'Choose another volume')],
  },
  node_lost: { title: 'A node of the cluster is lost', tone: 'wait', mends: facts => [moreWorkers(facts)] },
  low_priority: { title: 'Only jobs of low priority', tone: 'wait', mends: facts => [keepReady(facts)] },
  batch_turn: {
    title: 'Batches take turns',
    tone: 'busy',
    mends: facts => [moreWorkers(facts), link('/batches', 'See the batches', 'read')],
  },
  runs_alone: { title: 'A job that runs alone', tone: 'busy', mends: nothing },
  rollout_stopped: {
    title: 'The rollout has stopped',
    tone: 'bad',
    mends: facts => [
      rollback(facts),
      ...(commanded(facts, PROMOTE) === null ? [restart('Try the new release again')] : failing(facts)),
      logs(facts),
      environment(facts),
    ],
  },
}

const TRY_AGAIN = 'Try again now'

/** How a cause looks. A server that is newer than this page may have others. */
export function toneOf(cause: string): CauseTone {
  return DECISIONS[cause as Cause]?.tone ?? 'wait'
}

/** The cause in a few words. */
export function titleOf(cause: string): string {
  return DECISIONS[cause as Cause]?.title ?? 'Waiting'
}

/** Whether somebody should look at it: it does not pass by itself, or not soon. */
export function needsAttention(cause: string): boolean {
  const tone = toneOf(cause)
  return tone === 'bad' || tone === 'wait'
}

/** Whether a wait has just begun, so that it may be over before one has read about it. */
export function isPassing({ cause, sinceMs }: { cause: string; sinceMs: number | null }, ms: number, nowMs: number) {
  if (toneOf(cause) === 'bad' || cause === 'paused' || sinceMs === null) return false
  // A clock of the browser that is behind does not hide anything.
  return nowMs >= sinceMs && nowMs - sinceMs < ms
}

/** A clause of the server as a sentence. One that begins with a name is left as it is. */
export function sentence(text: string): string {
  const isName = !/^(?:the|no|all|more|workers?|there|of|each|this|release|another|attempt|an?|only)\b/.test(text)
  return isName ? text : text[0]!.toUpperCase() + text.slice(1)
}

/** A note without the commands at its end, for which there are buttons. */
export function noteText(note: string): string {
  return sentence(note.replace(/(?:: |; promote it with )runyard .*$/s, ''))
}

/** What to do, without the commands that its buttons are. */
export function advice(action: string): string {
  return sentence(action.replaceAll(/ \(runyard [^()]*\)|: runyard logs \w+/g, ''))
}

/** The line that names the error in what a worker printed; null where none does. */
export function errorLine(lines: readonly string[]): string | null {
  return lines.findLast(line => /^(?:[\w.]*(?:Error|Exception)\b|fatal\b)/i.test(line)) ?? null
}

/** What mends an explanation, the main action first. */
export function mendsOf(facts: MendFacts): readonly Mend[] {
  const found = DECISIONS[facts.explained.cause as Cause]?.mends(facts) ?? []
  // Beside another cause, a stopped rollout is named by the command that takes it back.
  const stopped = commanded(facts, ROLLBACK) === null ? null : rollback(facts)
  return unique([...found, stopped].filter(mend => mend !== null))
}

/** What a note advises, from the commands that it names. */
export function mendsOfNote(note: string, facts: MendFacts): readonly Mend[] {
  const promoted = /runyard endpoints promote \S+ (\d+)/.exec(note)?.[1]
  if (promoted !== undefined) {
    const title = `Promote release ${promoted} to all workers`
    const base = ROLLBACK.exec(note)?.[1]
    const promote: Mend = { kind: 'promote', title, version: Number(promoted) }
    return base === undefined
      ? [promote]
      : [promote, rollbackTo(Number(base), `End the canary: back to release ${base}`)]
  }
  const [, flag, value] = /runyard endpoints update \S+ --(max|idle-timeout) (\d+)/.exec(note) ?? []
  if (value === undefined || facts.endpoint === null) return []
  return [flag === 'max' ? workersMax(facts, Number(value)) : idleTimeout(facts, Number(value))]
}

const ROLLBACK = /endpoints rollback \S+ (\d+)/
const PROMOTE = /endpoints promote \S+ (\d+)/

/** Remedies for a release that was stopped because it failed its jobs, besides a rollback. */
function failing(facts: MendFacts): readonly Mend[] {
  const version = commanded(facts, PROMOTE)!
  return [
    link(`/endpoints/${facts.id}/requests?status=FAILED,TIMED_OUT`, 'See the failed requests'),
    { kind: 'promote', title: `Promote release ${version} all the same`, version },
  ]
}

function rollbackTo(version: number, title: string): Mend {
  return { kind: 'rollback', title, version }
}

function unique(mends: readonly Mend[]): readonly Mend[] {
  const titles = new Set<string>()
  return mends.filter(({ title }) => !titles.has(title) && titles.add(title))
}

function link(href: string, title: string, needs: Needs = 'write'): Mend {
  return { kind: 'link', title, href, needs }
}

function machine(title: string): Mend {
  return link('/machine', title, 'operate')
}

function settings({ id }: MendFacts, part: string, title: string): Mend {
  return link(`/endpoints/${id}/settings#${part}`, title)
}

function environment(facts: MendFacts): Mend {
  return settings(facts, 'env', 'Change the environment')
}

function logs({ id, explained }: MendFacts): Mend {
  const said = [...explained.commands, explained.action ?? '', explained.summary].join('\n')
  const worker = /runyard logs (\w+)|\bworker (\w+) is\b/.exec(said)
  const of = worker?.[1] ?? worker?.[2]
  return link(`/endpoints/${id}/logs${of === undefined ? '' : `?worker=${of}`}`, 'See its output', 'read')
}

function restart(title: string): Mend {
  return { kind: 'restart', title }
}

/** The value of an option in the commands of an explanation, such as that of `--max`. */
function commanded({ explained }: MendFacts, option: RegExp): number | null {
  for (const command of explained.commands) {
    const value = option.exec(command)?.[1]
    if (value !== undefined) return Number(value)
  }
  return null
}

/** As many workers as the notes advise, else as the commands say. */
function moreWorkers(facts: MendFacts): Mend | null {
  if (facts.endpoint === null) return null
  const advised = facts.explained.notes.map(note => /runyard endpoints update \S+ --max (\d+)/.exec(note)?.[1])
  const wanted = Math.max(commanded(facts, /--max (\d+)/) ?? 0, ...advised.map(value => Number(value ?? 0)))
  return wanted > facts.endpoint.workers.max ? workersMax(facts, wanted) : null
}

/** A change of one setting. */
function patch(
  title: string,
  change: readonly [name: string, from: string | number, to: string | number],
  body: UpdateEndpointRequest,
  isRelease = false,
): Mend {
  const [name, from, to] = change
  return { kind: 'patch', title, changes: [{ name, from: String(from), to: String(to) }], body, isRelease }
}

function workersText(number: number): string {
  return number === 1 ? '1 worker' : `${number} workers`
}

/** Allows so many workers. */
export function workersMax({ endpoint }: Pick<MendFacts, 'endpoint'>, max: number): Mend {
  const change = ['Workers at most', endpoint!.workers.max, max] as const
  return patch(`Allow ${workersText(max)}`, change, { workers: { max } })
}

function idleTimeout({ endpoint }: MendFacts, seconds: number): Mend {
  const from = endpoint!.workers.idleTimeout
  const change = ['Idle timeout', from === undefined ? '–' : `${from} s`, `${seconds} s`] as const
  return patch(`Keep idle workers for ${seconds} s`, change, { workers: { idleTimeout: seconds } })
}

function keepReady(facts: MendFacts): Mend | null {
  const min = commanded(facts, /--min (\d+)/)
  if (min === null || facts.endpoint === null) return null
  const change = ['Workers at least', facts.endpoint.workers.min, min] as const
  return patch(`Keep ${workersText(min)} ready`, change, { workers: { min } })
}

/** Lets jobs wait less before another worker starts. */
function sooner({ endpoint, explained }: MendFacts): Mend | null {
  if (endpoint === null || !/smaller scalerValue/.test(explained.action ?? '')) return null
  const { scaling } = endpoint
  const from = scaling.type === 'QUEUE_DELAY' ? scaling.queueDelay : scaling.requestCount
  const value = Math.max(1, Math.floor(from / 2))
  if (value >= from) return null
  if (scaling.type === 'QUEUE_DELAY') {
    const title = `Start another worker after ${value} s of waiting`
    return patch(title, ['Queue delay', `${from} s`, `${value} s`], { scaling: { ...scaling, queueDelay: value } })
  }
  const title = `Start a worker for each ${value === 1 ? 'request' : `${value} requests`}`
  return patch(title, ['Requests for each worker', from, value], { scaling: { ...scaling, requestCount: value } })
}

const INIT_TIMEOUT = 'RUNPOD_INIT_TIMEOUT'
const DEFAULT_INIT_TIMEOUT_S = 420

/** Twice the time for the start of a worker. A value that comes from a secret is changed by hand. */
function longerStart(facts: MendFacts): Mend {
  const { endpoint } = facts
  const set = endpoint?.env[INIT_TIMEOUT]
  const seconds = 2 * Number(set ?? /within (\d+) s/.exec(facts.explained.summary)?.[1] ?? DEFAULT_INIT_TIMEOUT_S)
  if (endpoint === null || !Number.isSafeInteger(seconds) || seconds <= 0) {
    return settings(facts, 'env', `Allow more time (${INIT_TIMEOUT})`)
  }
  const env = { ...endpoint.env, [INIT_TIMEOUT]: String(seconds) }
  const change = [INIT_TIMEOUT, set ?? `${seconds / 2} (default)`, seconds] as const
  return patch(`Allow ${Math.round(seconds / 60)} min for the start`, change, { env }, true)
}

/** Back to the release that goes on; where none is known, to the one before the present one. */
function rollback(facts: MendFacts): Mend | null {
  const named = commanded(facts, ROLLBACK) ?? facts.releases?.rollout.workingVersion ?? null
  if (named !== null) return rollbackTo(named, `Roll back to release ${named}, the last that worked`)
  const before = releaseBefore(facts.releases)
  return before === null ? null : rollbackTo(before, `Roll back to release ${before}`)
}

/** The newest older release that differs. What the present one restored has been tried, and so have those after it. */
function releaseBefore(found: Releases | null): number | null {
  const [present, ...older] = found?.releases ?? []
  if (present?.version == null) return null
  const below = present.restoredVersion ?? present.version
  const versions = older.flatMap(({ version }) => (version !== null && version < below ? version : []))
  return versions.find(version => changesBack(found, version).length > 0) ?? null
}

/** What a rollback to a release changes, from what each newer one changed. */
export function changesBack(found: Releases | null, version: number): readonly Change[] {
  const newer = found?.releases.filter(release => release.version !== null && release.version > version) ?? []
  const changes = new Map<string, Change>()
  // Newest first: the first value of a field is the present one, and the last old one is that of the release.
  for (const { diff } of newer)
    for (const { field, old, new: present } of diff)
      changes.set(field, { name: field, from: changes.get(field)?.from ?? valueText(present), to: valueText(old) })
  return [...changes.values()].filter(({ from, to }) => from !== to)
}

function valueText(value: unknown): string {
  if (value === null || value === undefined || value === '') return '–'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function secretLinks({ explained }: MendFacts): Mend[] {
  const names = explained.commands.flatMap(command => /secrets create --name (\S+)/.exec(command)?.[1] ?? [])
  if (names.length === 0) return [link('/secrets', 'Create the secrets')]
  return names.map(name => link(`/secrets?new=${encodeURIComponent(name)}`, `Create the secret ${name}`))
}

function imageLinks(facts: MendFacts): Mend[] {
  const action = facts.explained.action ?? ''
  const image = settings(facts, 'image', 'Change the image or its command')
  if (/registry credential/.test(action)) return [link('/registries', 'Save a registry credential'), image]
  if (/CPU flavor/.test(action)) return [settings(facts, 'hardware', 'Give workers more memory')]
  const ofMachine =
    /--process-root|--docker|Podman|container toolkit|amdgpu|catatonit|disk space|reaches the registry|container engine|--kubernetes-|user of the server/
  if (ofMachine.test(action)) return [machine('See what is wrong with the machine'), image]
  return [image]
}

function modelLinks(facts: MendFacts): Mend[] {
  const action = facts.explained.action ?? ''
  if (/token/.test(action))
    return [link('/secrets', 'Save a token as a secret'), settings(facts, 'env', 'Name it in the environment')]
  if (/disk space|reaches the hub/.test(action)) return [machine('See what is wrong with the machine')]
  return [settings(facts, 'models', 'Change the models')]
}

function placeLinks(facts: MendFacts): readonly Mend[] {
  const action = facts.explained.action ?? ''
  const holders = machine('See who holds the machine')
  if (/of the account/.test(action)) return [link('/usage', 'See what the account uses', 'read'), holders]
  if (/runyard models list/.test(action)) return []
  if (/pools|fewer GPUs|CUDA/.test(action)) return [settings(facts, 'hardware', 'Choose other GPUs'), holders]
  if (/CPU flavor/.test(action)) return [settings(facts, 'hardware', 'Choose smaller workers'), holders]
  return [holders, settings(facts, 'hardware', 'Choose other hardware')]
}
