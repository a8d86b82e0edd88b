/** Entries of the audit log: who did what, from where, to which object, and what became of it. */
import type { KeyId, OwnerId } from '../ids.ts'
import { type FieldChange, shortened } from './field-change.ts'

/** Where an operation came from: one of the surfaces, or the server itself. */
export const AUDIT_SURFACES = ['rest', 'restV1', 'graphql', 'jobs', 'ops', 'console', 'server'] as const
/** One of {@link AUDIT_SURFACES}. */
export type AuditSurface = (typeof AUDIT_SURFACES)[number]

/**
 * What became of an operation. `begun` is on stable storage before anything is changed, and another entry ends it: `done`, `refused` (nothing
 * was changed), `failed` (it may have been changed), or `unknown` where the server ended meanwhile.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const
/** One of {@link AUDIT_OUTCOMES}. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

/** What an operation was about. */
export interface AuditObject {
  readonly kind: string
  readonly id: string
}

/** Facts besides changes of fields, such as the names of the secrets that a worker got. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/** Who asked, and from where. */
export interface AuditOrigin {
  /** Null for the server itself, and for strangers. */
  readonly account: OwnerId | null
  readonly keyId: KeyId | null
  /** Whether somebody asked who is signed in to the console. */
  readonly session: boolean
  readonly address: string | null
  readonly requestId: string | null
}

/** The server itself, which nobody asked. */
export const SERVER_ORIGIN: AuditOrigin = { account: null, keyId: null, session: false, address: null, requestId: null }

/** An entry as it is made, before it has its place in the chain. */
export interface AuditEntry extends AuditOrigin {
  readonly atMs: number
  readonly surface: AuditSurface
  readonly operation: string
  readonly object: AuditObject | null
  readonly changes: readonly FieldChange[]
  readonly detail: AuditDetail
  readonly outcome: AuditOutcome
  /** What kind of error refused it or made it fail; null for none. */
  readonly problem: string | null
  /** The sequence number of the entry that this one ends; null for none. */
  readonly begun: number | null
}

/** An entry in its place. */
export interface KeptEntry {
  readonly sequence: number
  readonly atMs: number
  /** The text of {@link entryText}, which the hash is of. */
  readonly content: string
  /** SHA-256 over the hash of the entry before and the content, in hexadecimal. */
  readonly hash: string
}

/** A place in the chain: an entry and its hash. */
export interface ChainPlace {
  readonly sequence: number
  readonly hash: string
}

/** What is before the first entry of a database. */
export const CHAIN_BEGIN: ChainPlace = { sequence: 0, hash: '0'.repeat(64) }

/** What a hash is of: one line of JSON with all members in this order, in which nothing is left out. */
export function entryText(entry: AuditEntry, sequence: number): string {
  const { atMs, account, keyId, session, address, surface, operation, object, changes } = entry
  const { detail, outcome, problem, requestId, begun } = entry
  return JSON.stringify({
    sequence,
    at: new Date(atMs).toISOString(),
    account,
    keyId,
    session,
    address: address === null ? null : columnText(address),
    surface,
    operation: columnText(operation),
    object: object === null ? null : { kind: object.kind, id: columnText(object.id) },
    changes,
    detail,
    outcome,
    problem,
    requestId,
    begun,
  })
}

/** An entry as its text shows it. */
export interface ShownEntry extends Omit<AuditEntry, 'atMs'> {
  readonly sequence: number
  readonly at: string
}

/** The entry that a text of {@link entryText} is of. */
export function readEntry(content: string): ShownEntry {
  return JSON.parse(content) as ShownEntry
}

/** Which entries a list has; null for any. */
export interface AuditFilter {
  readonly account: string | null
  readonly key: string | null
  readonly operation: string | null
  /** The id of an object. */
  readonly object: string | null
  readonly surface: AuditSurface | null
  /** Instants, the second one excluded. */
  readonly sinceMs: number | null
  readonly untilMs: number | null
}

/** What is kept of the audit log. */
export interface AuditRules {
  readonly keptMs: number
  /** The oldest go first. */
  readonly maxEntries: number
}

/** A year, and some gigabytes. */
export const AUDIT_RULES: AuditRules = { keptMs: 365 * 24 * 60 * 60_000, maxEntries: 5_000_000 }

/** A text that comes from outside, as every database keeps it and every screen can show it. */
function columnText(text: string): string {
  return shortened(text.toWellFormed().replaceAll(/\p{Cc}/gu, '?'))
}
