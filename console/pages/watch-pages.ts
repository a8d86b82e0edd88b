/** Pages that show what happens and what happened. Loaded together. */
export { Alerts } from './alerts/alerts.tsx'
export { Audit } from './audit/audit.tsx'
export { Batches } from './batches/batches.tsx'
export { Events } from './events/events.tsx'
export { Models } from './models/models.tsx'
export { Tasks } from './tasks/tasks.tsx'
export { Webhooks } from './webhooks/webhooks.tsx'
