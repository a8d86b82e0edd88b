import { AppError } from '../../core/errors.ts'
import { readJson } from '../../core/json/json-text.ts'
import { passphraseProblem } from '../../core/secrets/passphrase.ts'
import type { Backups, BackupWish } from '../../ports/backups.ts'
import type { Access } from '../../services/accounts/access.ts'
import { type AuditParts, audited } from '../audited.ts'
import { type BodyRoom, requestOf } from '../body.ts'
import { addRoute, OPS_ROUTES, type OpsApp } from './route-access.ts'

/** What the route of backups needs. */
export interface BackupRouteParts extends AuditParts {
  readonly access: Access
  readonly backups: Backups
  readonly room: BodyRoom
}

const BODY_BYTES = 8_192

/** `POST /ops/backup`: a backup of the server as it is now, as the body of the response. */
export function addBackupRoute(app: OpsApp, parts: BackupRouteParts): void {
  const { access, backups, room } = parts
  const { operation } = OPS_ROUTES['POST /ops/backup']
  addRoute(app, access, 'POST /ops/backup', async (call, caller) => {
    const wish = await room.of(caller.owner).body(requestOf(call), BODY_BYTES, async body => wishIn(body))
    // With the keys somebody can go on when the own key has ended.
    if (wish.passphrase !== null) access.requireLastingOperator(caller, operation, call.env.session !== undefined)
    const detail = { withKeys: wish.passphrase !== null, withLogs: wish.withLogs }
    const asked = { surface: 'ops', operation, caller, env: call.env, object: null, detail } as const
    const backup = await audited(parts, asked, () => backups.make(wish))
    call.env.delivery.onSettled(() => void backup.drop())
    return new Response(streamOf(backup.pieces), { headers: { 'content-type': 'application/octet-stream' } })
  })
}

function wishIn(body: unknown): BackupWish {
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

/** A stream of pieces, as fast as the client reads. */
function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
