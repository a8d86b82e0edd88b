import type { Ports } from '../ports/ports.ts'
import { EndpointDomains } from '../services/endpoints/endpoint-domains.ts'
import { Endpoints } from '../services/endpoints/endpoints.ts'
import type { KnownEndpoints } from '../services/endpoints/known-endpoints.ts'
import { Releases } from '../services/endpoints/releases.ts'
import { Templates } from '../services/endpoints/templates.ts'
import { Volumes } from '../services/endpoints/volumes.ts'
import { Catalog } from '../services/hardware/catalog.ts'
import { ModelOperations } from '../services/models/model-operations.ts'
import { Registries } from '../services/secrets/registries.ts'
import { Secrets } from '../services/secrets/secrets.ts'
import type { AccountServices } from './account-services.ts'
import type { AppConfig } from './config.ts'
import type { WorkerServices } from './worker-services.ts'

/** Endpoints and templates. */
export interface EndpointServices {
  readonly endpoints: Endpoints
  readonly domains: EndpointDomains
  /** For the calls of jobs. */
  readonly known: KnownEndpoints
  readonly templates: Templates
}

export function createEndpointServices(
  ports: Ports,
  config: AppConfig,
  { quotas }: AccountServices,
  { fleet }: WorkerServices,
  known: KnownEndpoints,
): EndpointServices {
  const domains = new EndpointDomains(ports, config.isServerName)
  return {
    known,
    domains,
    endpoints: new Endpoints(ports, fleet, quotas, domains, config.deleteRunningEndpoints),
    templates: new Templates(ports, quotas),
  }
}

/** What endpoints and templates refer to, and what is kept of them. */
export interface ResourceServices {
  readonly catalog: Catalog
  readonly registries: Registries
  readonly releases: Releases
  readonly secrets: Secrets
  readonly volumes: Volumes
  readonly modelOperations: ModelOperations
}

export function createResourceServices(
  ports: Ports,
  { prices }: AppConfig,
  { quotas }: AccountServices,
  { endpoints }: EndpointServices,
  { fleet }: WorkerServices,
): ResourceServices {
  return {
    catalog: new Catalog(ports, prices),
    registries: new Registries(ports, quotas),
    releases: new Releases(ports, endpoints, fleet),
    secrets: new Secrets(ports, quotas),
    volumes: new Volumes(ports, quotas),
    modelOperations: new ModelOperations(ports),
  }
}
