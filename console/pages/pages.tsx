/** The pages by their addresses. */
import type { ComponentType } from 'preact'
import { Accounts } from './accounts/accounts.tsx'
import { Batches } from './batches/batches.tsx'
import { EndpointPage } from './endpoint/endpoint.tsx'
import { Endpoints } from './endpoints/endpoints.tsx'
import { NewEndpoint } from './endpoints/new-endpoint.tsx'
import { Home } from './home/home.tsx'
import { Keys } from './keys/keys.tsx'
import { Machine } from './machine/machine.tsx'
import { Registries } from './registries/registries.tsx'
import { Secrets } from './secrets/secrets.tsx'
import { Templates } from './templates/templates.tsx'
import { Usage } from './usage/usage.tsx'
import { Volumes } from './volumes/volumes.tsx'
import { Webhooks } from './webhooks/webhooks.tsx'

/** A page gets the parts of its address that the pattern names. */
interface Route {
  readonly pattern: string
  // Each pattern has other names.
  readonly page: ComponentType<Record<string, string>>
}

function route<Named extends Record<string, string>>(pattern: string, page: ComponentType<Named>): Route {
  return { pattern, page: page as unknown as Route['page'] }
}

/** The first pattern that matches wins. */
export const PAGES: readonly Route[] = [
  route('', Home),
  route('/endpoints', Endpoints),
  route('/endpoints/new', NewEndpoint),
  route('/endpoints/:id', EndpointPage),
  route('/endpoints/:id/:tab', EndpointPage),
  route('/machine', Machine),
  route('/templates', Templates),
  route('/secrets', Secrets),
  route('/registries', Registries),
  route('/volumes', Volumes),
  route('/batches', Batches),
  route('/webhooks', Webhooks),
  route('/keys', Keys),
  route('/accounts', Accounts),
  route('/usage', Usage),
]
