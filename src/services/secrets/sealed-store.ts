import type { Endpoint } from '../../core/endpoints/endpoint.ts'
import type { KeptConfiguration } from '../../core/endpoints/release.ts'
import type { RolloutFacts } from '../../core/endpoints/rollout-facts.ts'
import type { Template } from '../../core/endpoints/template.ts'
import type { Variables } from '../../core/secrets/payload-seal.ts'
import { inputPlace, webhookUrlPlace } from '../../core/secrets/seal-place.ts'
import type { BatchDraftRequest } from '../../ports/store/batch-store.ts'
import type { Store } from '../../ports/store/store.ts'
import type { SealPlace } from '../../ports/vault.ts'
import type { PayloadSeals } from './payload-seals.ts'

/**
 * A store whose payloads are sealed where {@link PayloadSeals.on} says so, and opened in any case. Only this class knows of it: the store itself
 * looks into none of them. The webhooks of jobs that it gives stay sealed, since only that there are some matters.
 */
export function sealedStore(store: Store, seals: PayloadSeals): Store {
  return {
    ...store,
    jobs: jobsOf(store, seals),
    jobRecords: {
      ...store.jobRecords,
      async find(endpointId, jobId, ...rest) {
        const record = await store.jobRecords.find(endpointId, jobId, ...rest)
        if (record === null || record.input === null) return record
        return { ...record, input: seals.opened(record.input, inputPlace(jobId)) }
      },
    },
    batches: batchesOf(store, seals),
    webhooks: {
      ...store.webhooks,
      async open(id) {
        const open = await store.webhooks.open(id)
        if (open === null) return null
        const { jobId, url, input } = open
        return {
          ...open,
          url: seals.opened(url, webhookUrlPlace(jobId)),
          input: input === null ? null : openedOr(seals, input, inputPlace(jobId), null),
        }
      },
      async unnamed(owner, nowMs, limit) {
        const found = await store.webhooks.unnamed(owner, nowMs, limit)
        return found.map(each => ({ ...each, url: openedOr(seals, each.url, webhookUrlPlace(each.jobId), each.url) }))
      },
    },
    templates: templatesOf(store, seals),
    endpoints: endpointsOf(store, seals),
    releases: releasesOf(store, seals),
    close: () => store.close(),
  }
}

/** A text, or a substitute where it cannot be opened. The try of a delivery then reports the URL. */
function openedOr<Else>(seals: PayloadSeals, text: string, place: SealPlace, otherwise: Else): string | Else {
  try {
    return seals.opened(text, place)
  } catch {
    return otherwise
  }
}

function jobsOf({ jobs }: Store, seals: PayloadSeals): Store['jobs'] {
  return {
    ...jobs,
    insert: job => jobs.insert(sealedRequest(seals, job)),
    insertOnce: (job, key, expiresAtMs) => jobs.insertOnce(sealedRequest(seals, job), key, expiresAtMs),
    async claim(request) {
      const claim = await jobs.claim(request)
      return { ...claim, jobs: claim.jobs.map(job => openedRequest(seals, job)) }
    },
  }
}

function batchesOf({ batches }: Store, seals: PayloadSeals): Store['batches'] {
  const sealed = (requests: readonly BatchDraftRequest[]) => requests.map(request => sealedRequest(seals, request))
  return {
    ...batches,
    create(draft, requests, ...rest) {
      const webhook = draft.webhook === null ? null : seals.sealed(draft.webhook, webhookUrlPlace(draft.id))
      return batches.create({ ...draft, webhook }, sealed(requests), ...rest)
    },
    add: (endpointId, batchId, requests, ...rest) => batches.add(endpointId, batchId, sealed(requests), ...rest),
  }
}

function templatesOf({ templates }: Store, seals: PayloadSeals): Store['templates'] {
  const open = (template: Template) => opened(seals, template)
  const openOne = (template: Template | null) => (template === null ? null : open(template))
  return {
    ...templates,
    insert: template => templates.insert(sealed(seals, template)),
    async replace(template, before, nowMs) {
      const now = await templates.find(before.owner, before.id)
      return templates.replace(sealed(seals, template, now?.env), asStored(seals, before, now), nowMs)
    },
    find: async (owner, id) => openOne(await templates.find(owner, id)),
    findPublic: async id => openOne(await templates.findPublic(id)),
    findByName: async (owner, name) => openOne(await templates.findByName(owner, name)),
    list: async (owner, slice) => (await templates.list(owner, slice)).map(open),
    listPublic: async slice => (await templates.listPublic(slice)).map(open),
    ofEndpoints: async owner => (await templates.ofEndpoints(owner)).map(open),
  }
}

function endpointsOf({ endpoints, templates }: Store, seals: PayloadSeals): Store['endpoints'] {
  return {
    ...endpoints,
    insert: (endpoint, own) =>
      endpoints.insert(sealed(seals, endpoint), own === undefined ? undefined : sealed(seals, own)),
    async replace(endpoint, before, nowMs, own, release) {
      const now = await endpoints.find(before.id)
      const ownNow = own === undefined ? null : await templates.find(own.owner, own.id)
      const ownSealed = own === undefined ? undefined : sealed(seals, own, ownNow?.env)
      const after = sealed(seals, endpoint, now?.env)
      return endpoints.replace(after, asStored(seals, before, now), nowMs, ownSealed, release)
    },
    async find(id) {
      const endpoint = await endpoints.find(id)
      return endpoint === null ? null : opened(seals, endpoint)
    },
    list: async (owner, slice) => (await endpoints.list(owner, slice)).map(endpoint => opened(seals, endpoint)),
    async snapshot(id) {
      const snapshot = await endpoints.snapshot(id)
      if (snapshot === null) return null
      const { endpoint, rollout } = snapshot
      return {
        ...snapshot,
        endpoint: opened(seals, endpoint),
        rollout: openedRollout(seals, endpoint.owner, rollout),
      }
    },
  }
}

function releasesOf({ releases }: Store, seals: PayloadSeals): Store['releases'] {
  return {
    ...releases,
    async find(endpointId, version) {
      const release = await releases.find(endpointId, version)
      if (release === null || release.configuration === null) return release
      return { ...release, configuration: openedConfiguration(seals, release.owner, release.configuration) }
    },
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

/** What has variables. */
type Holder = Pick<Endpoint | Template, 'owner' | 'env'>

function sealed<Kind extends Holder>(seals: PayloadSeals, holder: Kind, kept?: Variables): Kind {
  return { ...holder, env: seals.sealedVariables(holder.owner, holder.env, kept) }
}

function opened<Kind extends Holder>(seals: PayloadSeals, holder: Kind): Kind {
  const env = seals.openedVariables(holder.owner, holder.env)
  return env === holder.env ? holder : { ...holder, env }
}

/** A read value in the form of the store, so that the store sees whether it has changed since. @param now what the store has */
function asStored<Kind extends Holder>(seals: PayloadSeals, read: Kind, now: Kind | null): Kind {
  if (now === null) return read
  const isSame = JSON.stringify(seals.openedVariables(now.owner, now.env)) === JSON.stringify(read.env)
  return isSame ? { ...read, env: now.env } : read
}

/** The texts of a job, and of a request that becomes one. */
interface Request {
  readonly id: string
  readonly input: string
  readonly webhook: string | null
}

function sealedRequest<Kind extends Request>(seals: PayloadSeals, request: Kind): Kind {
  if (!seals.on) return request
  const { id, input, webhook } = request
  const url = webhook === null ? null : seals.sealed(webhook, webhookUrlPlace(id))
  return { ...request, input: seals.sealed(input, inputPlace(id)), webhook: url }
}

function openedRequest<Kind extends Request>(seals: PayloadSeals, request: Kind): Kind {
  const { id, input, webhook } = request
  const url = webhook === null ? null : seals.opened(webhook, webhookUrlPlace(id))
  return { ...request, input: seals.opened(input, inputPlace(id)), webhook: url }
}
