/** Pages that show what happens and what happened. Loaded together. */
export { Audit } from './audit/audit.tsx'
export { Events } from './events/events.tsx'
export { Models } from './models/models.tsx'
export { Tasks } from './tasks/tasks.tsx'
