/** The steps of a job, which all tools send alike. */
import type { Step } from './scripts.ts'

/** Submits a job to `<endpoint>` and waits for its greeting. */
export function job(name: string, more: object = {}): Step[] {
  return [
    {
      what: `runs a job for ${name}`,
      method: 'POST',
      path: '/v2/<endpoint>/run',
      body: { input: { name }, ...more },
      shows: { status: 'IN_QUEUE' },
      keeps: { job: 'id' },
    },
    {
      what: `sees the job for ${name} end`,
      method: 'GET',
      path: '/v2/<endpoint>/status/<job>',
      ends: true,
      shows: { status: 'COMPLETED', 'output.message': `Hello, ${name}!` },
    },
  ]
}
