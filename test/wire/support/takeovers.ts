/**
 * Parts of a run with two servers on one PostgreSQL: clients that retry, the journal of handlers, and the writes in
 * the database.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import type { Client } from 'pg'
import { patient } from '../../support/patience.ts'
import { ask } from './client.ts'
import type { Server } from './server.ts'
import { sleep, until } from './until.ts'

/** Wait of a client for an answer before it calls the other server: a stopped server never answers. */
const ANSWER_MS = 3_000

/** Clients of two servers, which submit jobs and poll the server that answers. */
export class TakeoverClients {
  readonly #servers: () => readonly Server[]
  readonly #endpoint: string
  readonly #waiting = new Set<string>()
  readonly #clients: Promise<void>[]
  /** The port of the server that answered last. */
  #answered = 0
  #submitted = 0
  #acknowledged = 0
  #isOver = false

  constructor(servers: () => readonly Server[], endpoint: string, clients: number, everyMs: number) {
    this.#servers = servers
    this.#endpoint = endpoint
    this.#clients = Array.from({ length: clients }, () => this.#submitOn(everyMs))
  }

  /** Number of jobs that a server has acknowledged. */
  get acknowledged(): number {
    return this.#acknowledged
  }

  /** Asks the server that answered last, and then each in turn until one answers what is not 503. */
  async call(path: string, request: Parameters<typeof ask>[2] = {}) {
    const servers = this.#servers()
    const first = Math.max(
      0,
      servers.findIndex(({ port }) => port === this.#answered),
    )
    for (let at = first; ; at += 1) {
      const server = this.#servers()[at % servers.length]!
      const answer = await ask(server, path, { ...request, signal: AbortSignal.timeout(patient(ANSWER_MS)) }).catch(
        () => null,
      )
      if (answer !== null && answer.status !== 503) {
        this.#answered = server.port
        return answer
      }
      await sleep(50)
    }
  }

  /** Every job that was acknowledged so far completes. */
  async allDone(forMs: number): Promise<void> {
    const reader = async () => {
      for (const id of [...this.#waiting]) {
        if (!this.#waiting.delete(id)) continue
        const end = await until(
          `job ${id} to end`,
          async () => {
            const { status, json } = await this.call(`/v2/${this.#endpoint}/status/${id}`)
            assert.equal(status, 200, `job ${id} was acknowledged and is gone`)
            return ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'].includes(json.status) && json
          },
          forMs,
          100,
        )
        assert.equal(end.status, 'COMPLETED', `job ${id}: ${JSON.stringify(end)}`)
      }
    }
    await Promise.all(Array.from({ length: 4 }, reader))
  }

  /** Stops submitting. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#clients)
  }

  /** Each job has the same key until it is acknowledged, as clients repeat a call with an unknown result. */
  async #submitOn(everyMs: number): Promise<void> {
    while (!this.#isOver) {
      const n = this.#submitted++
      const headers = { 'idempotency-key': `takeover-${n}` }
      const body = { input: { n, ms: 50 + ((n * 37) % 350) } }
      const { status, json, text } = await this.call(`/v2/${this.#endpoint}/run`, { body, headers })
      assert.equal(status, 200, text)
      this.#waiting.add(String(json.id))
      this.#acknowledged += 1
      await sleep(everyMs)
    }
  }
}

/** A line that a handler has written. */
interface Note {
  readonly job: string
  readonly attempt: string
  readonly what: 'begin' | 'end'
  readonly atNs: string
}

/** Attempts in the journal of the handlers. */
export function attemptsIn(journal: string): { attempts: number; jobs: number; again: number; together: string[] } {
  const text = existsSync(journal) ? readFileSync(journal, 'utf8') : ''
  const notes = text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as Note]))
  const spans = new Map<string, { job: string; begin: bigint; end: bigint | null }>()
  for (const { job, attempt, what: edge, atNs } of notes) {
    if (edge === 'begin') spans.set(attempt, { job, begin: BigInt(atNs), end: null })
    else spans.get(attempt)!.end = BigInt(atNs)
  }
  const byJob = Map.groupBy(spans.values(), ({ job }) => job)
  const together: string[] = []
  for (const [job, attempts] of byJob) {
    attempts.sort((a, b) => (a.begin < b.begin ? -1 : 1))
    const overlaps = attempts.some((one, at) => at > 0 && (attempts[at - 1]!.end ?? one.begin + 1n) > one.begin)
    if (overlaps) together.push(job)
  }
  const again = [...byJob.values()].filter(({ length }) => length > 1).length
  return { attempts: spans.size, jobs: byJob.size, again, together }
}

/**
 * Records each change of a table, with the server whose session made it. PostgreSQL itself
 * adds the time of each commit.
 */
export async function watchWrites(client: Client): Promise<void> {
  await client.query(`
    CREATE TABLE torture_servers (tag TEXT, pid INTEGER);
    CREATE TABLE torture_writes (tag TEXT, relation TEXT);
    CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO torture_writes VALUES (current_setting('torture.server', true), TG_TABLE_NAME);
      RETURN NULL;
    END $$;`)
  const { rows } = await client.query(`SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()
    AND tablename NOT LIKE 'torture_%' AND tablename NOT LIKE 'server_%'`)
  // A transaction each: one over all tables could deadlock with the servers, which write already.
  for (const { name } of rows)
    await client.query(
      `CREATE TRIGGER note_write AFTER INSERT OR UPDATE OR DELETE ON "${name}" EXECUTE FUNCTION note_write()`,
    )
}

/** The writes that were committed while another server was active, by the log of epochs; and the number of all. */
export async function writesOutOfTurn(client: Client): Promise<{ writes: number; outOfTurn: readonly object[] }> {
  const { rows } = await client.query('SELECT count(*)::int AS writes FROM torture_writes')
  const result = await client.query(`
    WITH terms AS (
      SELECT tag, active_at, (SELECT min(later.active_at) FROM server_epochs AS later WHERE later.epoch > own.epoch) AS over_at
      FROM server_epochs AS own JOIN torture_servers ON pid = (server->>'pid')::int
    ), writes AS (SELECT tag, relation, pg_xact_commit_timestamp(xmin) AS committed FROM torture_writes)
    SELECT * FROM writes WHERE NOT EXISTS (
      SELECT FROM terms WHERE terms.tag = writes.tag AND committed >= active_at AND (over_at IS NULL OR committed <= over_at)
    ) LIMIT 20`)
  return { writes: rows[0].writes as number, outOfTurn: result.rows as object[] }
}
