import type { Body, ReadingName, ReadingRest, Readings } from '../core/bodies/body-readings.ts'

/** Reads large bodies without blocking the event loop. */
export interface BodyParser {
  /**
   * Runs a reading of core/readings on the bytes of a body, or on a long text.
   * @throws AppError what the reading throws, and `unavailable` when it could not be done
   */
  read<Name extends ReadingName>(
    name: Name,
    body: Body,
    ...rest: ReadingRest<Name>
  ): Promise<ReturnType<Readings[Name]>>
}
