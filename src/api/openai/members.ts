import type { Caller } from '../../core/accounts/permission.ts'
import type { Body } from '../../core/bodies/body-readings.ts'
import { type MemberPlace, MemberScan } from '../../core/openai/member-scan.ts'
import { leavesUsageOut, STREAM_MEMBERS, withUsage } from '../../core/openai/usage-in-streams.ts'
import type { ApiParts } from '../parts.ts'
import { bytesOf } from './media.ts'

/** Bytes of a body that are searched in one turn of the event loop. */
const TURN_BYTES = 1_048_576

/** Members of a body that is JSON. */
export interface BodyMembers<Name extends string> {
  /** Those that it has; of members with one name the last, which workers read. */
  readonly places: Readonly<Partial<Record<Name, MemberPlace>>>
  /** Those that it has more than once. */
  readonly repeated: ReadonlySet<Name>
}

/** Finds members of a body that is JSON. */
export async function membersOf<Name extends string>(
  parts: ApiParts,
  pieces: readonly Uint8Array[],
  names: readonly Name[],
): Promise<BodyMembers<Name>> {
  const scan = new MemberScan(names)
  let bytes = 0
  for (const piece of pieces) {
    scan.push(piece)
    if (scan.over) break
    bytes += piece.length
    if (bytes < TURN_BYTES) continue
    bytes = 0
    await new Promise<void>(resolve => parts.ports.clock.after(0, resolve))
  }
  const places = Object.fromEntries(scan.places) as Partial<Record<Name, MemberPlace>>
  return { places, repeated: scan.repeated }
}

/** A body, and whether the event of usage of its stream is for the server alone. */
export interface AccountedBody {
  readonly body: Body
  readonly hidesUsage: boolean
}

/** The body of a request, which asks for usage in its stream if the key of its caller does. */
export async function accountedBody(
  parts: ApiParts,
  { accounting = false }: Caller,
  { method, route, body }: { readonly method: string; readonly route: string; readonly body: Body },
): Promise<AccountedBody> {
  if (!accounting || !leavesUsageOut(method, route)) return { body, hidesUsage: false }
  const pieces = bytesOf(body)
  const asking = withUsage(pieces, (await membersOf(parts, pieces, STREAM_MEMBERS)).places)
  const { hidesUsage } = asking
  if (asking.pieces === pieces) return { body, hidesUsage }
  return { body: typeof body === 'string' ? decoded(asking.pieces) : asking.pieces, hidesUsage }
}

/** A body as text. */
export function decoded(pieces: readonly Uint8Array[]): string {
  const decoder = new TextDecoder()
  return pieces.map(piece => decoder.decode(piece, { stream: true })).join('') + decoder.decode()
}
