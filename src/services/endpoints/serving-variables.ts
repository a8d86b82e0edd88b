import { servingVariables } from '../../core/endpoints/serving.ts'
import type { OwnerId } from '../../core/ids.ts'
import { secretPlace } from '../../core/secrets/seals.ts'
import { resolveSecrets, secretNames } from '../../core/secrets/secret.ts'
import type { Ports } from '../../ports/ports.ts'

/** Limit of the characters of a sealed value; no variable of serving needs more. */
const MAX_SEALED = 16_384
/** Time for which values are trusted without a notification of a change; notifications may be lost. */
const FRESH_MS = 30_000
const MAX_ENTRIES = 10_000

type Environment = Readonly<Record<string, string>>

/**
 * The variables of an environment that define how a worker serves, with the values of secrets in place of their
 * references. A reference to a secret that does not exist, cannot be opened or is far too long stays as it is, which
 * counts as not given.
 */
export async function resolvedServing(
  { store, vault }: Ports,
  owner: OwnerId,
  env: Environment,
): Promise<Record<string, string>> {
  const variables = servingVariables(env)
  const names = secretNames(variables)
  if (names.length === 0) return variables
  const sealed = await store.secrets.sealedValues(owner, names)
  const values = [...sealed].flatMap(([name, text]): [string, string][] => {
    if (text.length > MAX_SEALED) return []
    try {
      return [[name, vault.open(text, secretPlace(owner, name))]]
    } catch {
      // Its workers cannot start, and report the reason.
      return []
    }
  })
  return resolveSecrets(variables, new Map(values))
}

interface Entry {
  readonly values: Record<string, string>
  readonly readMs: number
  /** The number of changes at the time of the read. */
  readonly changes: number
}

/**
 * As {@link resolvedServing}, cached until a secret changes: requests and views of endpoints need it again and again.
 */
export class ServingVariables {
  readonly #ports
  readonly #entries = new Map<string, Entry>()
  readonly #unsubscribe: () => void
  /** Grows with each change of any secret, endpoint or template. */
  #changes = 0

  constructor(ports: Ports) {
    this.#ports = ports
    this.#unsubscribe = ports.notifier.subscribe('endpoints', () => {
      this.#changes += 1
    })
  }

  /** The variables of an environment of this owner, secrets resolved. */
  async of(owner: OwnerId, env: Environment): Promise<Record<string, string>> {
    const variables = servingVariables(env)
    if (secretNames(variables).length === 0) return variables
    const key = JSON.stringify([owner, variables])
    const entry = this.#entries.get(key)
    const nowMs = this.#ports.clock.monotonic()
    if (entry?.changes === this.#changes && nowMs - entry.readMs < FRESH_MS) return entry.values
    const changes = this.#changes
    const values = await resolvedServing(this.#ports, owner, variables)
    if (this.#entries.size >= MAX_ENTRIES) this.#entries.clear()
    this.#entries.set(key, { values, readMs: nowMs, changes })
    return values
  }

  /** Stops listening to changes. */
  close(): void {
    this.#unsubscribe()
  }
}
