/** Jobs a second through their whole life: stored, taken by a worker, done, and the result returned to the client. */
import { jobSides } from '../harness/job-sides.ts'
import { connectionCases, loadSuite } from '../harness/load-suite.ts'

/** See the head of this file. */
export const lifecycle = loadSuite({
  name: 'lifecycle',
  title: 'The whole life of a job: POST /runsync, kept, taken, done, and its result sent',
  notes:
    'One worker process takes 16 jobs at a time and returns at once: that of `@runyard/worker`, which takes and delivers over HTTP, or that of the peer itself, which speaks to its database. Job and result are on stable storage on all sides.',
  loads: connectionCases(1, 32),
  quick: ['32 connections'],
  baseline: 'BullMQ on Redis',
  compares: 'throughput',
  start: (bench, wants) =>
    jobSides(bench, wants, {
      call: 'runsync',
      sides: ['Runyard', 'Runyard on PostgreSQL', 'BullMQ on Redis', 'graphile-worker'],
    }),
})
