import {
  addTokens,
  DAY_MS,
  dayStart,
  MAX_MODELS,
  OTHER_MODELS,
  type TokenDay,
  tokensOfRequest,
} from '../../core/openai/token-sums.ts'
import type { Emit, Events } from '../../events.ts'
import type { Ports } from '../../ports/ports.ts'

/** Limit of figures that one call of the store adds. */
const MAX_ADDED = 200
/** Limit of figures in memory while the store fails; past it requests count under other models of their account. */
const MAX_HELD = 20_000

/**
 * Sums the tokens of answered requests from the stream of events, and adds them to the store in groups. A kill of the
 * server loses what came since the last flush; a stop loses nothing.
 */
export class TokenCounter {
  readonly #ports
  /** Figures that are not stored yet, by their place and day. */
  readonly #days = new Map<string, TokenDay>()
  /** Names of models that the store has, by account and day. */
  readonly #models = new Map<string, { readonly dayMs: number; readonly names: Set<string> }>()
  #flushing: Promise<void> = Promise.resolve()

  constructor(ports: Pick<Ports, 'store' | 'clock'>) {
    this.#ports = ports
  }

  /** A sink of the event stream. */
  readonly emit: Emit = (name, fields) => {
    if (name === 'tokens.used') this.#count(fields as Events['tokens.used'])
  }

  /** Stores all figures. One flush after the other, so that a figure is added once. */
  flush(): Promise<void> {
    const next = this.#flushing.then(() => this.#flush())
    this.#flushing = next.catch(() => {})
    return next
  }

  #count({ owner, endpointId, keyId, usage }: Events['tokens.used']): void {
    const dayMs = dayStart(this.#ports.clock.now())
    this.#add({ owner, endpointId, keyId, model: usage?.model ?? null, dayMs, figures: tokensOfRequest(usage) })
  }

  #add(day: TokenDay): void {
    const isFull = this.#days.size >= MAX_HELD
    const place = isFull && !this.#days.has(nameOf(day)) ? { ...day, keyId: null, model: OTHER_MODELS } : day
    const name = nameOf(place)
    const known = this.#days.get(name)
    this.#days.set(name, known === undefined ? place : { ...known, figures: addTokens(known.figures, day.figures) })
  }

  async #flush(): Promise<void> {
    while (this.#days.size > 0) {
      const days = [...this.#days].slice(0, MAX_ADDED)
      for (const [name] of days) this.#days.delete(name)
      const taken = days.map(([, day]) => day)
      try {
        await this.#ports.store.usage.addTokens(await this.#bounded(taken))
      } catch (error) {
        for (const day of taken) this.#add(day)
        throw error
      }
    }
  }

  /** The figures with as many names of models as an account may have in a day. */
  async #bounded(days: readonly TokenDay[]): Promise<TokenDay[]> {
    const bounded = new Map<string, TokenDay>()
    for (const day of days) {
      const place = { ...day, model: day.model === null ? null : await this.#modelName(day, day.model) }
      const name = nameOf(place)
      const known = bounded.get(name)
      bounded.set(name, known === undefined ? place : { ...known, figures: addTokens(known.figures, day.figures) })
    }
    return [...bounded.values()]
  }

  async #modelName({ owner, dayMs }: TokenDay, model: string): Promise<string> {
    const key = `${owner} ${dayMs}`
    let known = this.#models.get(key)
    if (known === undefined) {
      const names = await this.#ports.store.usage.modelsOfDay(owner, dayMs, MAX_MODELS + 1)
      known = { dayMs, names: new Set(names.filter(name => name !== OTHER_MODELS)) }
      for (const [other, { dayMs: otherMs }] of this.#models) if (otherMs < dayMs - DAY_MS) this.#models.delete(other)
      this.#models.set(key, known)
    }
    if (known.names.size >= MAX_MODELS && !known.names.has(model)) return OTHER_MODELS
    known.names.add(model)
    return model
  }
}

function nameOf({ owner, endpointId, keyId, model, dayMs }: TokenDay): string {
  return JSON.stringify([owner, endpointId, keyId, model, dayMs])
}
