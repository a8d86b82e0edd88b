import { type RateWindow, readWindows, WINDOWS_PROBLEM } from '../core/accounts/rate-limit.ts'
import { flag, setting, type ValueKind } from './setting.ts'

const RATE_WINDOWS: ValueKind<readonly RateWindow[]> = {
  check: text => (readWindows(text) === null ? WINDOWS_PROBLEM : null),
  parse: text => readWindows(text) ?? [],
}

/** The settings of the management API and the job operations. */
export const MANAGEMENT_SETTINGS = {
  rateWindows: setting(
    '--rate-limits',
    '<windows>',
    'minute=1200,hour=36000,day=500000',
    RATE_WINDOWS,
    'REST requests that an account may make in each window, or off',
  ),
  limitJobs: flag('--job-rate-limits', 'limit the calls of job operations per endpoint, as the hosted service does'),
  deleteRunningEndpoints: flag(
    '--delete-running-endpoints',
    'let GraphQL delete endpoints whose workersMin or workersMax is not 0, as REST does',
  ),
}
