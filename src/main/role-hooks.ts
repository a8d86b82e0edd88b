/** Who is told of each change of the role of this server, before others may rely on it. */
import type { Config } from '../config/config.ts'
import type { createLog } from '../system/observing/log.ts'

/** Is told that the server is active and answers, or that it stands by. */
export type RoleHook = (role: 'active' | 'standby') => Promise<void>

/** Those of a server with these settings. */
export function roleHooksOf(_config: Config, _log: ReturnType<typeof createLog>): readonly RoleHook[] {
  return []
}

/** How long a hook may keep a change of the role waiting. */
const HOOK_MS = 2_000

/** Tells all of them. Never throws: a role does not depend on who hears of it. */
export async function tellRole(
  hooks: readonly RoleHook[],
  role: 'active' | 'standby',
  log: ReturnType<typeof createLog>,
): Promise<void> {
  const late = new Promise<void>(resolve => setTimeout(resolve, HOOK_MS).unref())
  const told = hooks.map(hook =>
    hook(role).catch((error: unknown) => log.warn({ role, problem: String(error) }, 'role.untold')),
  )
  if (told.length > 0) await Promise.race([Promise.all(told), late])
}
