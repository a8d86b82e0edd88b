import type { TimeKeeper, TimeView } from '../../services/observing/server-time.ts'
import { audited } from '../audited.ts'
import type { ApiParts } from '../parts.ts'
import { jsonText } from '../surface.ts'
import { addRoute, OPS_ROUTES, type OpsApp } from './route-access.ts'

/**
 * `GET /ops/clock`: the server's time and the machine's clock. `POST /ops/clock/accept`: the server takes the
 * time of the machine's clock.
 */
export function addClockRoutes(app: OpsApp, parts: ApiParts, timeKeeper: TimeKeeper): void {
  const { access } = parts
  addRoute(app, access, 'GET /ops/clock', async () => answer(await timeKeeper.view()))
  addRoute(app, access, 'POST /ops/clock/accept', async (call, caller) => {
    const { operation } = OPS_ROUTES['POST /ops/clock/accept']
    const asked = { surface: 'ops', operation, caller, env: call.env, object: null } as const
    const accept = () => timeKeeper.accept()
    return answer(await audited(parts, asked, accept, { detailFromResult: ({ stepMs }) => ({ stepMs }) }))
  })
}

function answer({ nowMs, machineMs, stepMs, takenAtMs, heldUntilMs, note }: TimeView): Response {
  const at = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  const instants = { now: at(nowMs), machine: at(machineMs), takenAt: at(takenAtMs), heldUntil: at(heldUntilMs) }
  return jsonText(JSON.stringify({ ...instants, stepMs, note }))
}
