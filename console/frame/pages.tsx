/** The pages by their addresses. */
import type { ComponentType } from 'preact'
import { EndpointPage } from '../pages/endpoint/endpoint.tsx'
import { Endpoints } from '../pages/endpoints/endpoints.tsx'
import { Home } from '../pages/home/home.tsx'
import { later } from '../parts/later.tsx'

const Accounts = later(() => import('../pages/account-pages.ts').then(pages => pages.Accounts))
const Alerts = later(() => import('../pages/watch-pages.ts').then(pages => pages.Alerts))
const Apps = later(() => import('../pages/account-pages.ts').then(pages => pages.Apps))
const Audit = later(() => import('../pages/watch-pages.ts').then(pages => pages.Audit))
const Batches = later(() => import('../pages/watch-pages.ts').then(pages => pages.Batches))
const Events = later(() => import('../pages/watch-pages.ts').then(pages => pages.Events))
const Jobs = later(() => import('../pages/work-pages.ts').then(pages => pages.Jobs))
const Keys = later(() => import('../pages/account-pages.ts').then(pages => pages.Keys))
const LoginPage = later(() => import('../pages/account-pages.ts').then(pages => pages.LoginPage))
const Machine = later(() => import('../pages/work-pages.ts').then(pages => pages.Machine))
const Models = later(() => import('../pages/watch-pages.ts').then(pages => pages.Models))
const NewEndpoint = later(() => import('../pages/account-pages.ts').then(pages => pages.NewEndpoint))
const Playground = later(() => import('../pages/playground/playground.tsx').then(pages => pages.Playground))
const Registries = later(() => import('../pages/account-pages.ts').then(pages => pages.Registries))
const Secrets = later(() => import('../pages/account-pages.ts').then(pages => pages.Secrets))
const Tasks = later(() => import('../pages/watch-pages.ts').then(pages => pages.Tasks))
const Templates = later(() => import('../pages/account-pages.ts').then(pages => pages.Templates))
const Usage = later(() => import('../pages/chart-pages.ts').then(pages => pages.Usage))
const Volumes = later(() => import('../pages/account-pages.ts').then(pages => pages.Volumes))
const Webhooks = later(() => import('../pages/watch-pages.ts').then(pages => pages.Webhooks))

/** A page receives the parts of its address that the pattern names. */
interface Route {
  readonly pattern: string
  // Each pattern has other names.
  readonly page: ComponentType<Record<string, string>>
}

function route<Named extends object>(pattern: string, page: ComponentType<Named>): Route {
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
  route('/apps', Apps),
  route('/tasks', Tasks),
  route('/models', Models),
  route('/playground', Playground),
  route('/jobs', Jobs),
  route('/batches', Batches),
  route('/webhooks', Webhooks),
  route('/alerts', Alerts),
  route('/events', Events),
  route('/audit', Audit),
  route('/keys', Keys),
  route('/flash/login', LoginPage),
  route('/accounts', Accounts),
  route('/usage', Usage),
]
