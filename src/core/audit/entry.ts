/** Entries of the audit log: the actor, the operation, its origin, its object and its outcome. */
import type { KeyId, OwnerId } from '../ids.ts'
import { type FieldChange, shortened } from './field-change.ts'

/** Origin of an operation: one of the surfaces, or the server itself. */
export const AUDIT_SURFACES = ['rest', 'restV1', 'graphql', 'jobs', 'ops', 'console', 'server'] as const
/** One of {@link AUDIT_SURFACES}. */
export type AuditSurface = (typeof AUDIT_SURFACES)[number]

/**
 * Outcomes of an operation. `begun` is on stable storage before any change, and another entry ends it: `done`,
 * `refused` (nothing changed), `failed` (it may have changed something), or `unknown` if the server ended in
 * between.
 */
export const AUDIT_OUTCOMES = ['begun', 'done', 'refused', 'failed', 'unknown'] as const
/** One of {@link AUDIT_OUTCOMES}. */
export type AuditOutcome = (typeof AUDIT_OUTCOMES)[number]

/** Object of an operation. */
export interface AuditObject {
  readonly kind: string
  readonly id: string
}

/** Facts besides changes of fields, such as the names of the secrets that a worker got. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>

/** Actor and origin of an operation. */
export interface AuditOrigin {
  /** Null for the server itself, and for strangers. */
  readonly account: OwnerId | null
  readonly keyId: KeyId | null
  /** True if the actor is signed in to the console. */
  readonly session: boolean
  readonly address: string | null
  readonly requestId: string | null
}

/** Origin of the server's own operations. */
export const SERVER_ORIGIN: AuditOrigin = { account: null, keyId: null, session: false, address: null, requestId: null }

/** An entry before it has its place in the chain. */
export interface AuditEntry extends AuditOrigin {
  readonly atMs: number
  readonly surface: AuditSurface
  readonly operation: string
  readonly object: AuditObject | null
  readonly changes: readonly FieldChange[]
  readonly detail: AuditDetail
  readonly outcome: AuditOutcome
  /** Code of the error that refused it or made it fail; null without an error. */
  readonly problem: string | null
  /** Sequence number of the entry that this one ends; null for an entry that ends no other. */
  readonly begun: number | null
}

/** An entry at its place in the chain. */
export interface KeptEntry {
  readonly sequence: number
  readonly atMs: number
  /** The text of {@link entryText}; the hash covers it. */
  readonly content: string
  /** SHA-256 over the previous entry's hash and the content, in hexadecimal. */
  readonly hash: string
}

/** A place in the chain: an entry and its hash. */
export interface ChainPlace {
  readonly sequence: number
  readonly hash: string
}

/** Place before the first entry of a database. */
export const CHAIN_BEGIN: ChainPlace = { sequence: 0, hash: '0'.repeat(64) }

/** Text that is hashed: one line of JSON with all members in this order; none is omitted. */
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

/** Parses a text of {@link entryText}. */
export function readEntry(content: string): ShownEntry {
  return JSON.parse(content) as ShownEntry
}

/** Filter of a list of entries; null matches any. */
export interface AuditFilter {
  readonly account: string | null
  readonly key: string | null
  readonly operation: string | null
  /** The id of an object. */
  readonly object: string | null
  readonly surface: AuditSurface | null
  /** Instants; the second is exclusive. */
  readonly sinceMs: number | null
  readonly untilMs: number | null
}

/** Retention of the audit log. */
export interface AuditRules {
  readonly keptMs: number
  /** The oldest entries are removed first. */
  readonly maxEntries: number
}

/** A year, and some gigabytes. */
export const AUDIT_RULES: AuditRules = { keptMs: 365 * 24 * 60 * 60_000, maxEntries: 5_000_000 }

/** A text from outside, in a form that every database stores and every screen shows. */
function columnText(text: string): string {
  return shortened(text.toWellFormed().replaceAll(/\p{Cc}/gu, '?'))
}
