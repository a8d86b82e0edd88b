/** Randomness. All ids and tokens come from here. */
export interface Random {
  /** Cryptographically strong bytes in production, a seeded sequence in the simulator. */
  bytes(count: number): Uint8Array
  /** An RFC 9562 version 4 UUID. */
  uuid(): string
}
