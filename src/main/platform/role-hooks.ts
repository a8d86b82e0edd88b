/** Who is told of each change of the role of this server, before others may rely on it. */
import type { Config } from '../../config/config.ts'
import { clusterAccess } from '../../drivers/kubernetes/access.ts'
import { createHttpsApi } from '../../drivers/kubernetes/https-api.ts'
import { systemClock } from '../../system/clock.ts'
import type { Log } from '../../system/observing/log.ts'
import { type ActiveLabel, createActiveLabel, ownPod } from './active-label.ts'

/** Is told that the server is active and answers, or that it stands by. */
export type RoleHook = (role: 'active' | 'standby') => Promise<void>

/** Those of a server with these settings. */
export function roleHooksOf(config: Config, log: Log): readonly RoleHook[] {
  const label = ownLabel(config, log)
  return label === null ? [] : [role => label.show(role)]
}

/** The label of the own pod; null outside of a cluster. */
function ownLabel({ kubernetes: { where, context } }: Config, log: Log): ActiveLabel | null {
  const pod = ownPod(process.env)
  if (where !== 'in-cluster' || pod === null) return null
  const access = clusterAccess({ where, context, env: process.env, clock: systemClock })
  return createActiveLabel({
    api: createHttpsApi(access, systemClock),
    pod,
    clock: systemClock,
    onTrouble: (role, problem) => log.warn({ role, problem }, 'role.not_shown'),
  })
}

/** How long a hook may keep a change of the role waiting. */
const HOOK_MS = 2_000

/** Tells all of them. Never throws: a role does not depend on who hears of it. */
export async function tellRole(hooks: readonly RoleHook[], role: 'active' | 'standby', log: Log): Promise<void> {
  const late = new Promise<void>(resolve => setTimeout(resolve, HOOK_MS).unref())
  const told = hooks.map(hook =>
    hook(role).catch((error: unknown) => log.warn({ role, problem: String(error) }, 'role.untold')),
  )
  if (told.length > 0) await Promise.race([Promise.all(told), late])
}
