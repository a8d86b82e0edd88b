/** The settings about the management API and the job operations. */

import { type RateWindow, readWindows, WINDOWS_PROBLEM } from '../core/accounts/rate-limit.ts'
import { flag, type Setting, setting } from './setting.ts'

/** What clients may do, and how often. */
export interface ManagementConfig {
  readonly rateWindows: readonly RateWindow[]
  /** Whether each endpoint takes a limited number of calls of job operations. */
  readonly limitJobs: boolean
  /** Whether GraphQL deletes endpoints of all accounts that may still have workers. */
  readonly deleteRunningEndpoints: boolean
}

/** By the names of their options, as SETTINGS has them. */
export const MANAGEMENT_SETTINGS: Readonly<Record<string, Setting>> = {
  rateLimits: setting(
    '--rate-limits',
    'RATE_LIMITS',
    '<windows>',
    'minute=1200,hour=36000,day=500000',
    'REST requests that an account may make in each window, or off',
    text => (readWindows(text) === null ? WINDOWS_PROBLEM : null),
  ),
  jobRateLimits: flag(
    '--job-rate-limits',
    'JOB_RATE_LIMITS',
    'limit the calls of job operations per endpoint, as the hosted service does',
  ),
  deleteRunningEndpoints: flag(
    '--delete-running-endpoints',
    'DELETE_RUNNING_ENDPOINTS',
    'let GraphQL delete endpoints whose workersMin or workersMax is not 0, as REST does',
  ),
}

/** @param text what was given for each of {@link MANAGEMENT_SETTINGS} */
export function managementConfig(text: (name: string) => string): ManagementConfig {
  return {
    rateWindows: readWindows(text('rateLimits')) ?? [],
    limitJobs: text('jobRateLimits') === 'true',
    deleteRunningEndpoints: text('deleteRunningEndpoints') === 'true',
  }
}
