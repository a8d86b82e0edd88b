import type { Body, ReadingName, ReadingRest, Readings } from '../core/bodies/body-readings.ts'
import type { OwnerId } from '../core/ids.ts'

/** Reads large bodies without blocking the event loop. */
export interface BodyParser {
  /**
   * Runs a reading of core/bodies/body-readings.ts on the bytes of a body, or on a long text.
   * @param account whose turn it is: the owner of the endpoint or of the key; null without a key
   * @throws AppError the error of the reading, `rate_limited` when too much of this account waits already, and
   * `unavailable` when too much of all accounts waits, or it could not be done
   */
  read<Name extends ReadingName>(
    account: OwnerId | null,
    name: Name,
    body: Body,
    ...rest: ReadingRest<Name>
  ): Promise<ReturnType<Readings[Name]>>
}
