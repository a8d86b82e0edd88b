import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { KeptConfiguration } from '../../core/endpoints/release.ts'
import type { RolloutFacts } from '../../core/endpoints/rollout-facts.ts'
import type { Template } from '../../core/endpoints/template.ts'
import { largePartId } from '../../core/jobs/large-text.ts'
import type { WebhookDelivery } from '../../core/jobs/webhook.ts'
import {
  inputPlace,
  isSealedPayload,
  textPartPlace,
  type Variables,
  webhookUrlPlace,
} from '../../core/secrets/seals.ts'
import type { ArgumentsOf, ResultOf, SealedOperation, StoreLayer } from '../../ports/store/operations.ts'
import type { Store } from '../../ports/store/store.ts'
import type { SealPlace } from '../../ports/vault.ts'
import type { PayloadSeals } from './payload-seals.ts'

/**
 * Layer around the store that seals payloads if {@link PayloadSeals.on} is true, and always opens sealed ones. The
 * store itself reads none of them. Webhooks of jobs in results stay sealed: callers only test for their presence.
 */
export function sealing(seals: PayloadSeals): StoreLayer {
  return (call, name, { sealed: side }, store) => {
    if (side === 'arguments') {
      const seal = SEAL[name as SealedOperation<'arguments'>] as unknown as Seal
      return (...args) => {
        const sealed = seal(args, seals, store)
        return sealed instanceof Promise ? sealed.then(changed => call(...changed)) : call(...sealed)
      }
    }
    if (side === 'result') {
      const open = OPEN[name as SealedOperation<'result'>] as unknown as Open
      return async (...args) => open(await call(...args), seals, args)
    }
    return call
  }
}

type Seal = (args: unknown[], seals: PayloadSeals, store: Store) => unknown[] | Promise<unknown[]>
type Open = (result: unknown, seals: PayloadSeals, args: unknown[]) => unknown

/** Seals the arguments of an operation; `store` has the present values, sealed. */
const SEAL: {
  readonly [Name in SealedOperation<'arguments'>]: (
    args: ArgumentsOf<Name>,
    seals: PayloadSeals,
    store: Store,
  ) => ArgumentsOf<Name> | Promise<ArgumentsOf<Name>>
} = {
  'jobs.insert': ([job, ...rest], seals) => [sealedRequest(seals, job), ...rest],
  'jobs.insertOnce': ([job, ...rest], seals) => [sealedRequest(seals, job), ...rest],
  'batches.create': ([draft, requests, ...rest], seals) => {
    const webhook = draft.webhook === null ? null : seals.sealed(draft.webhook, webhookUrlPlace(draft.id))
    return [{ ...draft, webhook }, requests.map(request => sealedRequest(seals, request)), ...rest]
  },
  'batches.add': ([endpointId, batchId, requests, ...rest], seals) => {
    return [endpointId, batchId, requests.map(request => sealedRequest(seals, request)), ...rest]
  },
  'largeTexts.append': ([part], seals) => {
    // Also a part of an output, which is not a payload, must not be read as a sealed text.
    if (part.kind === 'output' && !isSealedPayload(part.text)) return [part]
    return [{ ...part, text: seals.sealed(part.text, textPartPlace(largePartId(part.id, part.seq))) }]
  },
  'templates.insert': ([template], seals) => [sealed(seals, template)],
  'templates.replace': async ([template, previous, nowMs], seals, { templates }) => {
    const stored = await templates.find(previous.owner, previous.id)
    return [sealed(seals, template, stored?.env), asStored(seals, previous, stored), nowMs]
  },
  'endpoints.insert': ([endpoint, ownTemplate], seals) => {
    return [sealed(seals, endpoint), ownTemplate === undefined ? undefined : sealed(seals, ownTemplate)]
  },
  'endpoints.replace': async ([endpoint, previous, nowMs, ownTemplate, release], seals, { endpoints, templates }) => {
    const stored = await endpoints.find(previous.id)
    const storedTemplate = ownTemplate === undefined ? null : await templates.find(ownTemplate.owner, ownTemplate.id)
    const sealedTemplate = ownTemplate === undefined ? undefined : sealed(seals, ownTemplate, storedTemplate?.env)
    return [sealed(seals, endpoint, stored?.env), asStored(seals, previous, stored), nowMs, sealedTemplate, release]
  },
}

/** Opens the result of an operation. */
const OPEN: {
  readonly [Name in SealedOperation<'result'>]: (
    result: ResultOf<Name>,
    seals: PayloadSeals,
    args: ArgumentsOf<Name>,
  ) => ResultOf<Name>
} = {
  'jobs.claim': (claim, seals) => ({ ...claim, jobs: claim.jobs.map(job => openedRequest(seals, job)) }),
  'jobRecords.find': (record, seals, [, jobId]) => {
    if (record === null || record.input === null) return record
    return { ...record, input: seals.opened(record.input, inputPlace(jobId)) }
  },
  'largeTexts.part': (text, seals, [id, seq]) =>
    text === null ? null : seals.opened(text, textPartPlace(largePartId(id, seq))),
  'webhooks.open': (webhook, seals) => {
    if (webhook === null) return null
    const { jobId, input } = webhook
    return {
      ...webhook,
      url: seals.opened(webhook.url, webhookUrlPlace(jobId)),
      input: input === null ? null : openedOr(seals, input, inputPlace(jobId), null),
    }
  },
  'webhooks.unnamed': (deliveries, seals) =>
    deliveries.map(each => ({ ...each, url: openedOr(seals, each.url, webhookUrlPlace(each.jobId), each.url) })),
  'webhooks.list': (deliveries, seals) => deliveries.map(each => shownDelivery(seals, each)),
  'webhooks.page': (part, seals) => ({ ...part, deliveries: part.deliveries.map(each => shownDelivery(seals, each)) }),
  'templates.find': openedOrNull,
  'templates.findPublic': openedOrNull,
  'templates.findByName': openedOrNull,
  'templates.list': openedAll,
  'templates.listPublic': openedAll,
  'templates.ofThese': openedAll,
  'templates.ofEndpoints': openedAll,
  'endpoints.find': openedOrNull,
  'endpoints.list': openedAll,
  'endpoints.named': openedAll,
  'endpoints.beginning': (found, seals) =>
    found.map(({ endpoint, template }) => ({
      endpoint: opened(endpoint, seals),
      template: openedOrNull(template, seals),
    })),
  'endpoints.snapshot': (snapshot, seals) => {
    if (snapshot === null) return null
    const { endpoint, rollout } = snapshot
    return { ...snapshot, endpoint: opened(endpoint, seals), rollout: openedRollout(seals, endpoint.owner, rollout) }
  },
  'releases.find': (release, seals) => {
    if (release === null || release.configuration === null) return release
    return { ...release, configuration: openedConfiguration(seals, release.owner, release.configuration) }
  },
}

/** A delivery as lists have it. */
function shownDelivery(seals: PayloadSeals, delivery: WebhookDelivery): WebhookDelivery {
  const { url, jobId } = delivery
  return url === null ? delivery : { ...delivery, url: openedOr(seals, url, webhookUrlPlace(jobId), null) }
}

/** A text, or a substitute for a text that cannot be opened. A delivery that is tried then reports the URL. */
function openedOr<Else>(seals: PayloadSeals, text: string, place: SealPlace, otherwise: Else): string | Else {
  try {
    return seals.opened(text, place)
  } catch {
    return otherwise
  }
}

function openedRollout(seals: PayloadSeals, owner: string, rollout: RolloutFacts): RolloutFacts {
  const { working } = rollout
  if (working === null) return rollout
  return {
    ...rollout,
    working: { ...working, configuration: openedConfiguration(seals, owner, working.configuration) },
  }
}

function openedConfiguration(
  seals: PayloadSeals,
  owner: string,
  { endpoint, template }: KeptConfiguration,
): KeptConfiguration {
  const open = (env: Variables) => seals.openedVariables(owner, env)
  return {
    endpoint: { ...endpoint, env: open(endpoint.env) },
    template: { ...template, env: open(template.env) },
  }
}

/** An endpoint or a template, which has variables. */
type Holder = Pick<Endpoint | Template, 'owner' | 'env'>

function sealed<Kind extends Holder>(seals: PayloadSeals, holder: Kind, storedVariables?: Variables): Kind {
  return { ...holder, env: seals.sealedVariables(holder.owner, holder.env, storedVariables) }
}

function opened<Kind extends Holder>(holder: Kind, seals: PayloadSeals): Kind {
  const env = seals.openedVariables(holder.owner, holder.env)
  return env === holder.env ? holder : { ...holder, env }
}

function openedOrNull<Kind extends Holder>(holder: Kind | null, seals: PayloadSeals): Kind | null {
  return holder === null ? null : opened(holder, seals)
}

function openedAll<Kind extends Holder>(holders: readonly Kind[], seals: PayloadSeals): Kind[] {
  return holders.map(holder => opened(holder, seals))
}

/**
 * A value that was read, in the form of the store, so that the store detects changes since then.
 * @param stored value in the store
 */
function asStored<Kind extends Holder>(seals: PayloadSeals, read: Kind, stored: Kind | null): Kind {
  if (stored === null) return read
  const isSame = JSON.stringify(seals.openedVariables(stored.owner, stored.env)) === JSON.stringify(read.env)
  return isSame ? { ...read, env: stored.env } : read
}

/** Texts of a job, or of a request that becomes one. */
interface Request {
  readonly id: string
  readonly input: string
  /** Not null where the input is in parts, each of which is sealed. */
  readonly largeInput?: object | null
  readonly webhook: string | null
}

function sealedRequest<Kind extends Request>(seals: PayloadSeals, request: Kind): Kind {
  if (!seals.on) return request
  const { id, input, largeInput, webhook } = request
  const url = webhook === null ? null : seals.sealed(webhook, webhookUrlPlace(id))
  return { ...request, input: largeInput == null ? seals.sealed(input, inputPlace(id)) : input, webhook: url }
}

function openedRequest<Kind extends Request>(seals: PayloadSeals, request: Kind): Kind {
  const { id, input, webhook } = request
  const url = webhook === null ? null : seals.opened(webhook, webhookUrlPlace(id))
  return { ...request, input: seals.opened(input, inputPlace(id)), webhook: url }
}
