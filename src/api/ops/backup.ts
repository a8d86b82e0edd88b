import type { Caller } from '../../core/accounts/permission.ts'
import { AppError } from '../../core/errors.ts'
import { readJson } from '../../core/json/json-text.ts'
import { passphraseProblem } from '../../core/secrets/passphrase.ts'
import type { Backups, BackupWish } from '../../ports/backups.ts'
import { audited } from '../audited.ts'
import { bodyRequest } from '../body.ts'
import type { ApiParts } from '../parts.ts'
import { heldFor } from '../surface.ts'
import { backupStream } from './backup-stream.ts'
import { addRoute, OPS_ROUTES, type OpsApp } from './route-access.ts'

const BODY_BYTES = 8_192

/** `POST /ops/backup`: a backup of the server as it is now, as the body of the response. */
export function addBackupRoute(app: OpsApp, parts: ApiParts, backups: Backups): void {
  const { clock } = parts.ports
  const { access, room } = parts
  const { operation } = OPS_ROUTES['POST /ops/backup']
  addRoute(app, access, 'POST /ops/backup', async (call, caller) => {
    const wish = await room.of(caller.owner).body(bodyRequest(call), BODY_BYTES, async body => readWish(body))
    // With the keys of the backup a caller could continue after its own key has expired.
    const mayHave = (whose: Caller) => {
      if (wish.passphrase === null) access.requireOperator(whose, operation)
      else access.requireLastingOperator(whose, operation, call.env.session !== undefined)
    }
    mayHave(caller)
    const detail = { withKeys: wish.passphrase !== null, withLogs: wish.withLogs }
    const asked = { surface: 'ops', operation, caller, env: call.env, object: null, detail } as const
    const ended = heldFor(access, call.env, caller, mayHave)
    const backup = await audited(parts, asked, () => backups.make(wish))
    call.env.delivery.onSettled(() => void backup.drop())
    if (ended.aborted) {
      await backup.drop()
      throw ended.reason
    }
    const body = backupStream(backup, clock, ended)
    return new Response(body, { headers: { 'content-type': 'application/octet-stream' } })
  })
}

function readWish(body: unknown): BackupWish {
  const reading = typeof body === 'string' ? readJson(body) : null
  const value: unknown = reading?.ok === true ? reading.value : null
  const { passphrase, withLogs = false, ...others } = Object(value) as Record<string, unknown>
  const isPassphrase = passphrase === null || typeof passphrase === 'string'
  if (!isPassphrase || typeof withLogs !== 'boolean' || Object.keys(others).length > 0) {
    throw new AppError(
      'invalid',
      'the body must be {"passphrase": "<text>", "withLogs": false}; with the passphrase null the keys are left out',
    )
  }
  const problem = passphrase === null ? null : passphraseProblem(passphrase)
  if (problem !== null) throw new AppError('invalid', `the passphrase ${problem}`)
  return { passphrase, withLogs }
}
