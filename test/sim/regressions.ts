import type { Features } from '../../sim/world.ts'

/** A seed that has once found a mistake, and which. Seeds are kept for ever. */
export interface Regression {
  readonly seed: number
  readonly found: string
  /** Additions of the run to the parts of all runs. */
  readonly features?: Features
}

/**
 * Seeds that once found a bug. The run of a seed changes with the simulator and the application, so a seed belongs to
 * its time only; keep them.
 */
export const regressions: readonly Regression[] = [
  { seed: 11, found: 'a worker was noted as ended, the store failed, and its job stayed with it until its timeout' },
  {
    seed: 14,
    found: 'a job was taken back from a worker that had ended, and given to the poll which that worker had left',
  },
  { seed: 101, found: 'the store failed in a step of the autoscaler, which forgot the endpoint and its waiting job' },
  { seed: 155, found: 'the store failed after a failed start, and the worker was taken for a starting one for ever' },
  { seed: 12, found: 'an event stream broke off with an error when its job expired or its endpoint was deleted' },
  { seed: 57, found: 'the notification of the first job of an endpoint was lost, and it waited for ever' },
  {
    seed: 148,
    found: 'a retried job was handed to the worker that still ran its last attempt, whose chunks then counted',
  },
  { seed: 279, found: 'the notification was lost that a worker had become idle, and it stayed for ever' },
  { seed: 306, found: 'the store failed after an endpoint was deleted, and its workers stayed for ever' },
  {
    seed: 1021,
    features: { shares: true },
    found:
      'jobs beside busy workers of an older release waited for the queue delay, and not for the place of a new one',
  },
  {
    seed: 5,
    features: { kubernetes: true },
    found: 'the API refused to delete the pod of a start that was given up, and it ran for nobody once it had a node',
  },
  {
    seed: 25,
    features: { kubernetes: true },
    found: 'the workers of a node that had lost its power had crashed, and their jobs lost an attempt',
  },
  {
    seed: 62,
    features: { kubernetes: true },
    found: 'a client got the pieces of a run that was taken away and those of the next one as one answer',
  },
  {
    seed: 6,
    features: { kubernetes: true, pair: true },
    found: 'a server asked an API that was away for each pod before it was active',
  },
  {
    seed: 2179,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a sleeping worker whose room a paused one gets first was said to be about to be thawed',
  },
  {
    seed: 4501,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a server that was never healthy stayed for ever where the server was killed before it had stored its start',
  },
  {
    seed: 4641,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a job that began in a paused worker, after a result that had come late, ran into its timeout',
  },
  {
    seed: 4486,
    features: { pauses: true, shares: true, suspends: true },
    found: 'another worker was said to be started in some seconds while it waited in line for a place',
  },
  {
    seed: 4389,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a worker stayed paused beside its free card, since the card of another one of its endpoint was in use',
  },
  {
    seed: 6161,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a paused worker waited for ever for the card of a frozen one of its own endpoint that kept its memory',
  },
  {
    seed: 6231,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a chunk was given twice whose job could not begin with it, which the worker had to send again',
  },
]
