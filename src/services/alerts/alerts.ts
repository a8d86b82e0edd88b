import type { Alert } from '../../core/alerts/alert.ts'
import { nextAlerts } from '../../core/alerts/alert.ts'
import {
  type AlertContent,
  type AlertMessage,
  alertContent,
  nextAttemptMs,
  testContent,
  writeMessage,
} from '../../core/alerts/alert-message.ts'
import {
  type AlertReceiver,
  MAX_RECEIVERS,
  type ReceiverInput,
  receiverProblems,
  shownAddress,
} from '../../core/alerts/alert-receiver.ts'
import { type Concern, findConcern } from '../../core/alerts/concern.ts'
import { AppError, invalidFields, notFound } from '../../core/errors.ts'
import { fieldProblem } from '../../core/field-problem.ts'
import { DEFAULT_OWNER, type EndpointId, type OwnerId, type ReceiverId } from '../../core/ids.ts'
import { HIDDEN_PROBLEM } from '../../core/jobs/webhook.ts'
import { receiverPlace } from '../../core/secrets/seals.ts'
import type { Mailer } from '../../ports/mailer.ts'
import type { Ports } from '../../ports/ports.ts'
import type { DueMessage } from '../../ports/store/alert-store.ts'
import type { Quotas } from '../accounts/quotas.ts'
import type { SharingGuard } from '../accounts/sharing-guard.ts'
import type { Overview, OverviewRow } from '../observing/overview.ts'
import { callOutbound } from '../outbound-call.ts'
import { shortId } from '../short-id.ts'

/** Endpoints of an account that one look reads, in pages of {@link PAGE}. */
const MAX_PAGES = 10
const PAGE = 1_000
/** Maximum alerts of an account at once. */
const MAX_ALERTS = 200
/** Messages that may wait for one receiver; further ones are dropped. */
const MAX_WAITING = 50
/** Tests that may wait for one receiver. */
const MAX_TESTS = 3
const CALL_MS = 10_000

/** Alerts of an account: their receivers, the looks at endpoints, and the delivery of messages. */
export class Alerts {
  readonly #ports
  readonly #parts

  constructor(
    ports: Ports,
    parts: {
      readonly overview: Overview
      readonly quotas: Quotas
      readonly sharing: SharingGuard
      /** Null without a mail server. */
      readonly mailer: Mailer | null
      /** Page of the console, or of one endpoint in it; null when the server has no address. */
      readonly pageUrl: (endpointId: EndpointId | null) => string | null
    },
  ) {
    this.#ports = ports
    this.#parts = parts
  }

  /** @throws AppError `invalid` with all failures, or `conflict` for one more than {@link MAX_RECEIVERS} */
  async add(owner: OwnerId, input: ReceiverInput): Promise<AlertReceiver> {
    const { store, vault, random, clock, notifier } = this.#ports
    const problems = [...receiverProblems(input), ...this.#mailProblems(owner, input)]
    if (problems.length > 0) throw invalidFields(problems)
    const { name, kind, address } = input
    const receiver: AlertReceiver = {
      id: shortId(random) as ReceiverId,
      owner,
      name,
      kind,
      shown: shownAddress(kind, address),
      createdAtMs: clock.now(),
      sentAtMs: null,
      problem: null,
    }
    await this.#parts.quotas.inTurn(owner, async () => {
      if ((await store.alerts.receivers(owner)).length >= MAX_RECEIVERS) {
        throw new AppError('conflict', `an account has at most ${MAX_RECEIVERS} receivers of alerts`)
      }
      await store.alerts.insertReceiver(receiver, vault.seal(address, receiverPlace(owner, receiver.id)))
    })
    notifier.publish('alerts')
    return receiver
  }

  /** The owner's receivers, oldest first; at most {@link MAX_RECEIVERS}. */
  receivers(owner: OwnerId): Promise<AlertReceiver[]> {
    return this.#ports.store.alerts.receivers(owner)
  }

  /** @throws AppError `not_found`, also for a receiver of another owner */
  async find(owner: OwnerId, id: ReceiverId): Promise<AlertReceiver> {
    const receiver = await this.#ports.store.alerts.findReceiver(owner, id)
    if (receiver === null) throw notFound('receiver', id)
    return receiver
  }

  /** Removes a receiver with its messages. @throws AppError `not_found` */
  async remove(owner: OwnerId, id: ReceiverId): Promise<void> {
    if (!(await this.#ports.store.alerts.removeReceiver(owner, id))) throw notFound('receiver', id)
  }

  /**
   * Sends a message to try a receiver. Its outcome is that of the receiver: an answer here would say by its time
   * what is at an address.
   * @throws AppError `not_found`, or `rate_limited` while earlier messages wait
   */
  async test(owner: OwnerId, id: ReceiverId): Promise<AlertReceiver> {
    const { store, clock, notifier } = this.#ports
    const receiver = await this.find(owner, id)
    if ((await store.alerts.waiting(id)) >= MAX_TESTS) {
      throw new AppError('rate_limited', 'earlier messages to this receiver still wait', { retryAfterSeconds: 10 })
    }
    const content = testContent(clock.now(), this.#parts.pageUrl(null))
    await store.alerts.addMessages([this.#message(receiver, content)])
    notifier.publish('alerts')
    return receiver
  }

  /** The alerts of an owner that were raised and are not over. Without a receiver nobody looks. */
  async open(owner: OwnerId): Promise<Alert[]> {
    return (await this.#ports.store.alerts.open(owner)).filter(({ raisedAtMs }) => raisedAtMs !== null)
  }

  /** Owners whose endpoints are looked at, after an owner. */
  owners(after: string, limit: number): Promise<OwnerId[]> {
    return this.#ports.store.alerts.owners(after, limit)
  }

  /** Looks at the endpoints of an owner, and puts messages about what has changed into the store. */
  async look(owner: OwnerId): Promise<void> {
    const { store, clock, emit, notifier } = this.#ports
    const previous = await store.alerts.open(owner)
    const concerns = await this.#concerns(owner, previous)
    const nowMs = clock.now()
    const { alerts, raised, over } = nextAlerts(owner, previous, concerns, nowMs)
    if (alerts.length === 0 && previous.length === 0) return
    const contents = [this.#content('raised', raised, nowMs), this.#content('over', over, nowMs)]
    const news = contents.filter(content => content !== null)
    const messages = news.length === 0 ? [] : await this.#messages(owner, news)
    await store.alerts.save(owner, alerts, messages)
    for (const { endpointId, cause, text } of raised) emit('alert.raised', { owner, endpointId, cause, text })
    for (const { endpointId, cause } of over) emit('alert.over', { owner, endpointId, cause })
    if (messages.length > 0) notifier.publish('alerts')
  }

  /** First messages of the receivers that are due, of each receiver one. */
  due(limit: number): Promise<DueMessage[]> {
    return this.#ports.store.alerts.due(this.#ports.clock.now(), limit)
  }

  /** Time of the next message; null without one. */
  nextDue(): Promise<number | null> {
    return this.#ports.store.alerts.nextDue()
  }

  /** Delivers one message and keeps its outcome. @param signal gives the attempt up, as if it had not been made */
  async deliver(due: DueMessage, signal: AbortSignal): Promise<void> {
    const { store, clock, emit } = this.#ports
    const { message, receiver } = due
    const problem = await this.#send(due, signal)
    if (signal.aborted) return
    const nowMs = clock.now()
    const nextMs = problem === null ? null : nextAttemptMs(message.attempts + 1, nowMs)
    if (problem === null || nextMs === null) await store.alerts.settle(message, nowMs, problem)
    else await store.alerts.putOff(message, nextMs, problem)
    emit('alert.sent', { owner: receiver.owner, receiverId: receiver.id, kind: receiver.kind, problem })
  }

  async #send({ message, receiver, sealed }: DueMessage, signal: AbortSignal): Promise<string | null> {
    const { id, owner, kind } = receiver
    const address = this.#addressOf(owner, id, sealed)
    if (address === null) return 'its address cannot be read; make a new receiver'
    const written = writeMessage(kind, message.id, message.content)
    if (written.form === 'mail') {
      const { mailer } = this.#parts
      const { subject, text } = written
      if (mailer === null) return 'the server has no mail server: it needs --smtp-url'
      return mailer.send({ to: address, subject, text, id: message.id })
    }
    const request = {
      url: address,
      headers: { 'content-type': 'application/json', 'webhook-id': message.id },
      body: written.body,
      ...this.#parts.sharing.webhookRules(owner),
    }
    const result = await callOutbound(this.#ports, request, { timeoutMs: CALL_MS, signal })
    if ('status' in result && result.status >= 200 && result.status < 300) return null
    // Accounts other than the operator's must not learn what is at an address of the operator's network.
    if (!result.isPublic && owner !== DEFAULT_OWNER) return HIDDEN_PROBLEM
    return 'problem' in result ? result.problem : `it answered ${result.status}`
  }

  /** The address of a receiver; null if it was sealed with a key that this server does not have. */
  #addressOf(owner: OwnerId, id: ReceiverId, sealed: string): string | null {
    try {
      return this.#ports.vault.open(sealed, receiverPlace(owner, id))
    } catch {
      return null
    }
  }

  #mailProblems(owner: OwnerId, { kind }: ReceiverInput) {
    if (kind !== 'email') return []
    if (this.#parts.mailer === null) return [fieldProblem('kind', 'must not be email: the server needs --smtp-url')]
    // The sender is the operator's, and a receiver could be anybody.
    return owner === DEFAULT_OWNER
      ? []
      : [fieldProblem('kind', "must not be email: only the operator's account sends mail")]
  }

  async #concerns(owner: OwnerId, previous: readonly Alert[]): Promise<Concern[]> {
    const known = new Map(previous.map(alert => [alert.endpointId, alert]))
    const concerns: Concern[] = []
    let after: string | undefined
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const request = { limit: PAGE, ...(after === undefined ? {} : { cursor: after }) }
      const { rows, unexplained, nextCursor } = await this.#parts.overview.page(owner, request)
      for (const row of rows) {
        const concern = findConcern(factsFromRow(row))
        const alert = known.get(row.endpoint.id)
        if (concern !== null) concerns.push(concern)
        // A row without its reason may be one of too many rows with one.
        else if (alert !== undefined && unexplained > 0 && row.why === null) {
          concerns.push({ ...alert, urgency: 'fix' })
        }
      }
      if (nextCursor === null) break
      after = nextCursor
    }
    const rank = ({ endpointId, urgency }: Concern) => (known.has(endpointId) ? 0 : urgency === 'fix' ? 1 : 2)
    return concerns.sort((a, b) => rank(a) - rank(b)).slice(0, MAX_ALERTS)
  }

  #content(reason: 'raised' | 'over', alerts: readonly Alert[], nowMs: number): AlertContent | null {
    if (alerts.length === 0) return null
    const [only] = alerts
    const url = this.#parts.pageUrl(alerts.length === 1 ? only!.endpointId : null)
    return alertContent(reason, alerts, nowMs, url)
  }

  async #messages(owner: OwnerId, contents: readonly AlertContent[]): Promise<AlertMessage[]> {
    const { store } = this.#ports
    const messages: AlertMessage[] = []
    for (const receiver of await store.alerts.receivers(owner)) {
      if ((await store.alerts.waiting(receiver.id)) >= MAX_WAITING) continue
      messages.push(...contents.map(content => this.#message(receiver, content)))
    }
    return messages
  }

  #message({ id: receiverId, owner }: AlertReceiver, content: AlertContent): AlertMessage {
    const { random, clock } = this.#ports
    return { id: shortId(random, 20), owner, receiverId, content, attempts: 0, dueAtMs: clock.now() }
  }
}

function factsFromRow({ endpoint, why, rollout, rate }: OverviewRow) {
  return { id: endpoint.id, name: endpoint.name, why, isRolloutStopped: rollout === 'STOPPED', rate }
}
