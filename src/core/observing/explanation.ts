/** Explanations: the causes of waits, with the actions that end them. */
import type { EndpointId } from '../ids.ts'
import { type Action, actionCommand } from './action.ts'
import { PLACE_CAUSES } from './explain-place.ts'

/** The causes of a wait, and the states of an endpoint or job that does not wait. */
export const WAIT_CAUSES = [
  ...(['nothing_waits', 'finished', 'running', 'about_to_start', 'paused'] as const),
  ...(['image_error', 'model_error', 'engine_away', 'secret_missing', 'volume_missing', 'settings_invalid'] as const),
  ...(['crash_loop', 'out_of_memory', 'fitness_failed', 'hung_start', 'unhealthy', 'never_healthy'] as const),
  ...([
    'models_downloading',
    'worker_starting',
    'worker_restarting',
    'max_reached',
    'no_capacity',
    'throttled',
    'preempted',
  ] as const),
  ...PLACE_CAUSES,
  ...(['low_priority', 'batch_turn', 'runs_alone', 'rollout_stopped', 'store_damaged', 'store_full'] as const),
] as const
/** One of {@link WAIT_CAUSES}. */
export type WaitCause = (typeof WAIT_CAUSES)[number]

/** One cause: the sentence that names it, the facts that show it, and the actions that end it. */
export interface Explanation {
  readonly cause: WaitCause
  readonly summary: string
  /** The advice for people; null if only waiting helps. */
  readonly advice: string | null
  /** The beginning of the cause in epoch milliseconds; null if it has no beginning. */
  readonly sinceMs: number | null
  /** The last lines of a worker's output, or the state of workers and queue; empty if nothing waits. */
  readonly facts: readonly string[]
  /** The steps that a person can take, the main one first; empty if only waiting helps. */
  readonly actions: readonly Action[]
  /** Facts beside the cause: workers that run without a GPU although the endpoint asks for one, failed starts. */
  readonly notes: readonly Note[]
}

/** A fact beside the cause, as a sentence, with the actions for it. */
export interface Note {
  readonly text: string
  readonly actions: readonly Action[]
}

/** A cause without facts and actions. */
export function plain(cause: WaitCause, summary: string): Explanation {
  return { cause, summary, advice: null, sinceMs: null, facts: [], actions: [], notes: [] }
}

/** A note that asks for nothing. */
export function plainNote(text: string): Note {
  return { text, actions: [] }
}

/** An action with its command. */
export type ActionView = Action & {
  /**
   * The command line of the action, or of more details, ready to paste; null if no command exists. `<...>` stands for
   * a value that the person chooses.
   */
  readonly command: string | null
  /** The index of the note of the action; null if the action is for the cause. */
  readonly note: number | null
}

/**
 * An explanation as JSON. `action`, `commands` and `evidence` are the advice, the commands of the actions of the
 * cause, and the facts.
 */
export interface ExplanationView extends Pick<Explanation, 'cause' | 'summary' | 'sinceMs'> {
  readonly action: string | null
  readonly commands: readonly string[]
  readonly evidence: readonly string[]
  readonly notes: readonly string[]
  /** Those of the cause first, the main one before the others; then those of the notes. */
  readonly actions: readonly ActionView[]
}

/** The JSON of an explanation. @param endpoint the endpoint that the commands name */
export function explanationView(explanation: Explanation, endpoint: EndpointId): ExplanationView {
  const { cause, summary, advice, sinceMs, facts, notes } = explanation
  const actionView = (action: Action, note: number | null) =>
    ({ ...action, command: actionCommand(action, endpoint), note }) as ActionView
  const own = explanation.actions.map(action => actionView(action, null))
  const ofNotes = notes.flatMap(({ actions }, note) => actions.map(action => actionView(action, note)))
  const commands = [...new Set(own.flatMap(({ command }) => command ?? []))]
  const texts = notes.map(({ text }) => text)
  return {
    cause,
    summary,
    action: advice,
    commands,
    sinceMs,
    evidence: facts,
    notes: texts,
    actions: [...own, ...ofNotes],
  }
}
