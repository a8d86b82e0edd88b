import type { Features } from '../../sim/world.ts'

/** A seed that has once found a mistake, and which. Seeds are kept for ever. */
export interface Regression {
  readonly seed: number
  readonly found: string
  /** Additions of the run to the parts of all runs. */
  readonly features?: Features
  /** A smaller test that holds the same, which runs in its place: its file in `test`, and words of its title. */
  readonly test?: readonly [file: string, title: string]
  /** Seconds of the simulation after which the run ends, since the mistake shows before; by default at its end. */
  readonly untilS?: number
}

/**
 * Seeds that once found a bug. The run of a seed changes with the simulator and the application, so a seed belongs to
 * its time only; keep them. Those without a smaller test here fail without the mend, and run with all tests; the
 * others run on demand (`regressions.test.ts`).
 */
export const regressions: readonly Regression[] = [
  {
    seed: 11,
    found: 'a worker was noted as ended, the store failed, and its job stayed with it until its timeout',
    test: [
      'app/jobs/reaper.test.ts',
      'jobs of a worker that ended are queued again also when the store failed in the middle of it',
    ],
  },
  {
    seed: 14,
    found: 'a job was taken back from a worker that had ended, and given to the poll which that worker had left',
    test: [
      'app/workers/ended-workers.test.ts',
      'the take that an ended worker has left gets no job, also not the one that was taken back from it',
    ],
  },
  {
    seed: 101,
    found: 'the store failed in a step of the autoscaler, which forgot the endpoint and its waiting job',
    test: [
      'app/scaling/autoscaler.test.ts',
      'an endpoint whose workers were being looked at when the store failed is looked at again',
    ],
  },
  {
    seed: 155,
    found: 'the store failed after a failed start, and the worker was taken for a starting one for ever',
    test: [
      'app/scaling/autoscaler.test.ts',
      'a failed start is followed by another one also when the store failed while it was recorded',
    ],
  },
  {
    seed: 12,
    found: 'an event stream broke off with an error when its job expired or its endpoint was deleted',
    test: [
      'app/jobs/streams.test.ts',
      'a stream of a job that expires ends with TIMED_OUT, as a response or as the last event',
    ],
  },
  {
    seed: 57,
    found: 'the notification of the first job of an endpoint was lost, and it waited for ever',
    test: ['app/scaling/autoscaler.test.ts', 'a job without a notification gets its worker within half a minute'],
  },
  {
    seed: 148,
    found: 'a retried job was handed to the worker that still ran its last attempt, whose chunks then counted',
    test: [
      'app/jobs/taking.test.ts',
      'a job that is retried goes to no worker that has yet to stop its last attempt, and to that one once it has',
    ],
  },
  {
    seed: 279,
    found: 'the notification was lost that a worker had become idle, and it stayed for ever',
    test: ['app/scaling/autoscaler.test.ts', 'a lost notification costs seconds and no worker'],
  },
  {
    seed: 306,
    found: 'the store failed after an endpoint was deleted, and its workers stayed for ever',
    test: [
      'app/scaling/autoscaler.test.ts',
      'the workers of a deleted endpoint end also when the store failed after the endpoint was gone',
    ],
  },
  {
    seed: 1021,
    features: { shares: true },
    found:
      'jobs beside busy workers of an older release waited for the queue delay, and not for the place of a new one',
    test: [
      'app/observing/explainer.test.ts',
      'a job that waits beside busy workers of an older release says that the new one has no place',
    ],
  },
  {
    seed: 5,
    features: { kubernetes: true },
    found: 'the API refused to delete the pod of a start that was given up, and it ran for nobody once it had a node',
    test: [
      'drivers/kubernetes/kubernetes-driver.test.ts',
      'the pod of a start that was given up is removed once the cluster takes that',
    ],
  },
  {
    seed: 25,
    features: { kubernetes: true },
    found: 'the workers of a node that had lost its power had crashed, and their jobs lost an attempt',
    test: [
      'drivers/kubernetes/pod-report.test.ts',
      'a container that was gone when its node came back, as after a loss of power, was taken away',
    ],
  },
  {
    seed: 62,
    features: { kubernetes: true },
    found: 'a client got the pieces of a run that was taken away and those of the next one as one answer',
    test: [
      'app/openai/openai.test.ts',
      'an answer that breaks off because its worker is taken away is not begun again, although its attempt does not count',
    ],
  },
  {
    seed: 6,
    features: { kubernetes: true, pair: true },
    found: 'a server asked an API that was away for each pod before it was active',
    test: [
      'drivers/kubernetes/kubernetes-driver.test.ts',
      'a server that becomes active asks for no pod that the list had, and waits for no cluster that does not answer',
    ],
  },
  {
    seed: 2179,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a sleeping worker whose room a paused one gets first was said to be about to be thawed',
    test: [
      'core/observing/explain.test.ts',
      'a sleeping worker that waits behind a paused one of its endpoint is not said to be thawed in a moment',
    ],
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
    test: [
      'contract/store-take-ahead.ts',
      'the next job of a worker that was paused before its last result came is paused from its begin',
    ],
  },
  {
    seed: 4486,
    features: { pauses: true, shares: true, suspends: true },
    found: 'another worker was said to be started in some seconds while it waited in line for a place',
    test: [
      'core/observing/explain.test.ts',
      '1 worker is busy, and there is no room for the next one: all 2 GPUs of ADA_24 are taken',
    ],
  },
  {
    seed: 4389,
    features: { pauses: true, shares: true, suspends: true },
    found: 'a worker stayed paused beside its free card, since the card of another one of its endpoint was in use',
    untilS: 200,
  },
  {
    seed: 43338,
    features: { pauses: true, shares: true, suspends: true },
    found: 'the end of a worker was published twice, since the store failed as a second caller recorded it',
    untilS: 80,
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
    untilS: 130,
  },
]
