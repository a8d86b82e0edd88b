/** Pages with charts, loaded together. */
export { Metrics } from './endpoint/metrics/metrics.tsx'
export { Usage } from './usage/usage.tsx'
