/** Why an image could not be downloaded, from the words of engines and registries. */
import type { PullProblem } from '../core/workers/start-failure.ts'

/** What kept an image from being downloaded. @param hasCredential whether the download had a credential */
export function pullProblem(said: string, hasCredential: boolean): PullProblem {
  return REASONS.find(([words]) => words.test(said))?.[1](hasCredential) ?? 'unknown'
}

/** What engines and registries say of a download that fails. */
const REASONS: readonly (readonly [RegExp, (hasCredential: boolean) => PullProblem])[] = [
  [/no space left/i, () => 'disk_full'],
  [/toomanyrequests|rate limit/i, () => 'download_limit'],
  [/no matching manifest|does not match the specified platform|no match for platform/i, () => 'other_processor'],
  [
    /unauthorized|authentication required|no basic auth|incorrect username or password|\b401\b/i,
    has => (has ? 'credential_refused' : 'credential_missing'),
  ],
  [
    /access denied|access to the resource is denied|may require|forbidden|\b403\b/i,
    has => (has ? 'not_found_for_credential' : 'not_found_or_private'),
  ],
  [/manifest unknown|not found|name unknown|does not exist/i, () => 'not_found'],
  [
    /dial tcp|no such host|i\/o timeout|connection refused|connection reset|tls|client\.timeout|request canceled|deadline exceeded|\beof\b|unreachable|proxyconnect/i,
    () => 'unreachable',
  ],
]
