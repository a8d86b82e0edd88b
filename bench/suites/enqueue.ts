/** Jobs a second that are stored: each is on stable storage before its response. No worker takes them. */
import { ceilingSide, jobSides } from '../harness/job-sides.ts'
import { connectionCases, loadSuite } from '../harness/load-suite.ts'

/** See the head of this file. */
export const enqueue = loadSuite({
  name: 'enqueue',
  title: 'Keep a job: POST /run, 400 bytes of input, on stable storage before the response',
  loads: connectionCases(1, 32, 128),
  quick: ['32 connections'],
  baseline: 'BullMQ on Redis',
  compares: 'throughput',
  start: (bench, wants) =>
    jobSides(bench, wants, {
      call: 'run',
      sides: ['Runyard', 'Runyard on PostgreSQL', 'BullMQ on Redis', 'graphile-worker', 'pg-boss'],
      more: { 'HTTP stack alone, nothing kept': () => ceilingSide(bench) },
    }),
})
