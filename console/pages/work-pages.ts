/** Pages of work: jobs, lines and workers. Loaded together. */
export { Logs } from './endpoint/logs/logs.tsx'
export { Requests } from './endpoint/requests/requests.tsx'
export { Workers } from './endpoint/workers/workers.tsx'
export { Jobs } from './jobs/jobs.tsx'
export { Machine } from './machine/machine.tsx'
