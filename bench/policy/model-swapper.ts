/**
 * A swapper of models, written after the documentation of such programs: a request for a model that is on no card ends
 * the model that was used least recently, and starts its own. A model that has to go finishes its requests first, and
 * new ones for it wait. It decides and ends programs in no time.
 */
import { VirtualClock } from '../../sim/clock.ts'
import { settle } from '../../sim/run.ts'
import { BusyCard } from './busy-card.ts'
import type { Model, ModelRequest } from './model-requests.ts'
import { startMs } from './model-times.ts'
import { BATCH, CARD_GIB, CARDS, type PolicyOutcome, PolicyRecorder } from './policy-outcome.ts'

/** Settings of a {@link playSwapper}. */
export interface SwapperSettings {
  /** True if models share a card as far as its memory goes, false for one model on each card. */
  readonly shares: boolean
  /** True if a program starts while another one starts on its card. */
  readonly startsAtOnce: boolean
  /** Time that each start takes beyond the measured one, to read the weights. */
  readonly weightsMs: number
}

interface SwappedModel {
  readonly model: Model
  readonly waiting: ModelRequest[]
  /** The card that it is on; null if it is on none. */
  card: SwapperCard | null
  readyAtMs: number
  usedAtMs: number
  running: number
  /** True once it has to go. */
  isLeaving: boolean
}

interface SwapperCard {
  readonly busy: BusyCard
  readonly models: Set<SwappedModel>
}

/** Plays the requests. */
export async function playSwapper(
  { models, requests }: { readonly models: readonly Model[]; readonly requests: readonly ModelRequest[] },
  settings: SwapperSettings,
): Promise<PolicyOutcome> {
  const clock = new VirtualClock()
  const swapper = new ModelSwapper(clock, models, requests, settings)
  while (!swapper.recorder.isOver) {
    clock.advance(clock.monotonic() + 1_000)
    await settle(() => clock.timers)
  }
  return swapper.recorder.outcome()
}

class ModelSwapper {
  readonly recorder: PolicyRecorder
  readonly #clock
  readonly #settings
  readonly #models: readonly SwappedModel[]
  readonly #cards: readonly SwapperCard[]

  constructor(
    clock: VirtualClock,
    models: readonly Model[],
    requests: readonly ModelRequest[],
    settings: SwapperSettings,
  ) {
    this.#clock = clock
    this.#settings = settings
    this.#cards = Array.from({ length: CARDS }, () => ({ busy: new BusyCard(clock), models: new Set<SwappedModel>() }))
    this.#models = models.map(model => ({
      model,
      waiting: [],
      card: null,
      readyAtMs: 0,
      usedAtMs: 0,
      running: 0,
      isLeaving: false,
    }))
    this.recorder = new PolicyRecorder(clock, requests, () => ({
      cards: this.#cards.reduce((sum, card) => sum + this.#usedGib(card) / CARD_GIB, 0),
      suspendedGib: 0,
    }))
    for (const request of requests)
      clock.after(request.atMs, () => {
        this.#models[request.model]!.waiting.push(request)
        this.#go()
      })
  }

  /** Begins what can begin, and makes room for the model whose request has waited longest. */
  #go(): void {
    for (const model of this.#models) if (model.isLeaving && model.running === 0) this.#end(model)
    for (const model of this.#models) this.#begin(model)
    const wanted = this.#models
      .filter(({ card, waiting }) => card === null && waiting.length > 0)
      .sort((a, b) => a.waiting[0]!.atMs - b.waiting[0]!.atMs)
    for (const model of wanted) if (!this.#place(model)) return
  }

  #begin(model: SwappedModel): void {
    const { card, waiting } = model
    const nowMs = this.#clock.monotonic()
    if (card === null || model.isLeaving || model.readyAtMs > nowMs) return
    while (waiting.length > 0 && model.running < BATCH) {
      const request = waiting.shift()!
      model.running += 1
      model.usedAtMs = nowMs
      this.recorder.began(request, model.readyAtMs)
      void card.busy.run(model.model.name, request.workMs).then(() => {
        this.recorder.ended(request)
        model.running -= 1
        model.usedAtMs = this.#clock.monotonic()
        this.#go()
      })
    }
  }

  /** Starts a model where there is room; else models have to go. False if it has to wait for them. */
  #place(model: SwappedModel): boolean {
    const free = this.#cards
      .filter(card => this.#fits(model, [...card.models]) && this.#mayStart(card))
      .sort((a, b) => this.#usedGib(b) - this.#usedGib(a))[0]
    if (free !== undefined) {
      this.#start(model, free)
      return true
    }
    // Room comes without another decision.
    if (
      this.#cards.some(card =>
        this.#fits(
          model,
          [...card.models].filter(({ isLeaving }) => !isLeaving),
        ),
      )
    )
      return false
    const victims = this.#cards
      .map(card => this.#victims(model, card))
      .filter(chosen => chosen !== null)
      .sort((a, b) => lastUse(a) - lastUse(b))[0]
    for (const victim of victims ?? []) victim.isLeaving = true
    const idle = victims?.every(({ running }) => running === 0) === true
    for (const victim of victims ?? []) if (victim.running === 0) this.#end(victim)
    if (idle) this.#place(model)
    return idle && model.card !== null
  }

  /** The models of a card that were used least recently, as many as have to go; null if that is not enough. */
  #victims(model: SwappedModel, card: SwapperCard): SwappedModel[] | null {
    const rest = [...card.models].sort((a, b) => a.usedAtMs - b.usedAtMs)
    const victims: SwappedModel[] = []
    while (!this.#fits(model, rest)) {
      const victim = rest.shift()
      // A model that starts has requests that wait for it.
      if (victim === undefined || victim.readyAtMs > this.#clock.monotonic()) return null
      victims.push(victim)
    }
    return victims
  }

  /** True if no program starts on a card that would measure another one's memory meanwhile. */
  #mayStart({ models }: SwapperCard): boolean {
    return this.#settings.startsAtOnce || [...models].every(({ readyAtMs }) => readyAtMs <= this.#clock.monotonic())
  }

  #fits({ model }: SwappedModel, others: readonly SwappedModel[]): boolean {
    if (!this.#settings.shares) return others.length === 0
    return others.reduce((sum, other) => sum + other.model.gib, model.gib) <= CARD_GIB
  }

  #usedGib({ models }: SwapperCard): number {
    if (!this.#settings.shares) return models.size * CARD_GIB
    return [...models].reduce((sum, { model }) => sum + model.gib, 0)
  }

  #start(model: SwappedModel, card: SwapperCard): void {
    const duration = startMs(model.model.gib) + this.#settings.weightsMs
    this.recorder.starts += 1
    card.models.add(model)
    model.card = card
    model.isLeaving = false
    model.readyAtMs = this.#clock.monotonic() + duration
    model.usedAtMs = model.readyAtMs
    this.#clock.after(duration, () => this.#go())
  }

  #end(model: SwappedModel): void {
    model.card?.models.delete(model)
    model.card = null
    model.isLeaving = false
  }
}

function lastUse(models: readonly SwappedModel[]): number {
  return Math.max(...models.map(({ usedAtMs }) => usedAtMs))
}
