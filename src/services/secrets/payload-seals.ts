import {
  inputPlace,
  isSealedPayload,
  type PayloadKind,
  SEALED_MARK,
  textPartPlace,
  type Variables,
  variablePlace,
  webhookUrlPlace,
} from '../../core/secrets/seals.ts'
import type { SealPlace, Vault } from '../../ports/vault.ts'

/** Limit of decrypted variables in the cache: endpoints are read with each request. */
const MAX_OPENED = 1_000

/** Seals payloads of the store and opens them: inputs of jobs, URLs of webhooks, and values of variables. */
export class PayloadSeals {
  readonly #vault
  readonly #opened = new Map<string, string>()
  /** True to seal payloads from now on; sealed payloads are opened in any case. */
  readonly on: boolean

  constructor(vault: Vault, on: boolean) {
    this.#vault = vault
    this.on = on
  }

  /** An input, a part of one, or a URL in the form of the store. A text that looks like a sealed one is sealed. */
  sealed(text: string, place: SealPlace): string {
    return this.on || isSealedPayload(text) ? this.#seal(text, place) : text
  }

  /** The text of {@link sealed}. @throws AppError `internal` for a text that was changed or moved */
  opened(text: string, place: SealPlace): string {
    return isSealedPayload(text) ? this.#vault.open(text.slice(SEALED_MARK.length), place) : text
  }

  /**
   * Variables in the form of the store.
   * @param stored the variables in the store; an unchanged value keeps its sealed text, so that it counts as the same
   */
  sealedVariables(owner: string, plain: Variables, stored: Variables = {}): Variables {
    return mapped(plain, (value, name) => {
      const storedText = stored[name]
      if (storedText !== undefined && isSealedPayload(storedText) && this.#value(owner, name, storedText) === value)
        return storedText
      return this.on || isSealedPayload(value) ? this.#seal(value, variablePlace(owner, name)) : value
    })
  }

  /** The variables of {@link sealedVariables}. @throws as {@link opened} */
  openedVariables(owner: string, stored: Variables): Variables {
    if (!Object.values(stored).some(isSealedPayload)) return stored
    return mapped(stored, (value, name) => this.#value(owner, name, value))
  }

  /** A payload in the form of the store, sealed unless it was. @param row as ports/management-store.ts has it */
  sealedText(kind: PayloadKind, row: string, text: string): string {
    return rewritten(kind, row, text, (value, place) => (isSealedPayload(value) ? value : this.#seal(value, place)))
  }

  /** A payload in the form of the store, sealed with the current key in place of another. */
  resealedText(kind: PayloadKind, row: string, text: string): string {
    return rewritten(kind, row, text, (value, place) => {
      if (!isSealedPayload(value)) return value
      const again = this.#vault.reseal(value.slice(SEALED_MARK.length), place)
      return again === null ? value : SEALED_MARK + again
    })
  }

  #seal(text: string, place: SealPlace): string {
    return SEALED_MARK + this.#vault.seal(text, place)
  }

  #value(owner: string, name: string, stored: string): string {
    if (!isSealedPayload(stored)) return stored
    const place = variablePlace(owner, name)
    const id = `${place.row} ${stored}`
    const cached = this.#opened.get(id)
    if (cached !== undefined) return cached
    const value = this.opened(stored, place)
    this.#opened.set(id, value)
    const [oldest] = this.#opened.keys()
    if (this.#opened.size > MAX_OPENED) this.#opened.delete(oldest!)
    return value
  }
}

/** The configuration of a release in its JSON form. */
interface ReleaseText {
  readonly endpoint: { readonly env: Variables }
  readonly template: { readonly env: Variables }
}

type Rewrite = (value: string, place: SealPlace) => string

function rewritten(kind: PayloadKind, row: string, text: string, rewrite: Rewrite): string {
  switch (kind) {
    case 'templates':
    case 'endpoints': {
      const config = JSON.parse(text) as { env?: Variables }
      if (config.env === undefined) return text
      const env = mapped(config.env, (value, name) => rewrite(value, variablePlace(row, name)))
      return JSON.stringify({ ...config, env })
    }
    case 'releases': {
      const { endpoint, template } = JSON.parse(text) as ReleaseText
      const again = (env: Variables) => mapped(env, (value, name) => rewrite(value, variablePlace(row, name)))
      return JSON.stringify({
        endpoint: { ...endpoint, env: again(endpoint.env) },
        template: { ...template, env: again(template.env) },
      })
    }
    case 'jobInputs':
    case 'recordInputs':
    case 'draftInputs':
      return rewrite(text, inputPlace(row))
    case 'largeTextParts':
      return rewrite(text, textPartPlace(row))
    default:
      return rewrite(text, webhookUrlPlace(row))
  }
}

function mapped(variables: Variables, change: (value: string, name: string) => string): Variables {
  return Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, change(value, name)]))
}
