/** Faults of calls and watches, as probabilities; all 0 once the faults are over. */
export interface ApiFaults {
  /** A call fails before it does anything. */
  readonly refused: number
  /** A call is done, and its answer is lost. */
  readonly lostAnswer: number
  /** An event is never sent. */
  readonly forgotten: number
  /** An event is sent twice. */
  readonly repeated: number
  /** An event comes after later ones. */
  readonly late: number
  /** A watch reports that its version is too old. */
  readonly expired: number
}

/** No faults. */
export const NO_API_FAULTS: ApiFaults = {
  refused: 0,
  lostAnswer: 0,
  forgotten: 0,
  repeated: 0,
  late: 0,
  expired: 0,
}
