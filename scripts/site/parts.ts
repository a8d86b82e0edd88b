/** The five parts of the site of the documentation, and the pages of each in the order in which they are shown. */

/** A part of the site. */
export interface Part {
  readonly title: string
  /** Paths of pages from the root of the repository. */
  readonly pages: readonly string[]
}

const guides = (...names: string[]) => names.map(name => `docs/guides/${name}.md`)
const reference = (...names: string[]) => names.map(name => `docs/reference/${name}.md`)
const internals = (...names: string[]) => names.map(name => `docs/internals/${name}.md`)

/** The page that is made of the OpenAPI document, which is no file of the repository. */
export const API_PAGE = 'docs/reference/api.md'

/** Where pages go that no part names, by their folders. */
const OTHERS: Readonly<Record<string, string>> = {
  'docs/guides/': 'Operate',
  'docs/reference/': 'Reference',
  'docs/internals/': 'Inside',
}

/** The parts with all pages of the documentation: one that no part names is at the end of the part of its folder. */
export function partsOf(files: readonly string[]): Part[] {
  const named = new Set(PARTS.flatMap(({ pages }) => pages))
  return PARTS.map(({ title, pages }) => {
    const folders = Object.keys(OTHERS).filter(folder => OTHERS[folder] === title)
    const isOther = (path: string) => path.endsWith('.md') && folders.some(folder => path.startsWith(folder))
    return { title, pages: [...pages, ...files.filter(path => isOther(path) && !named.has(path))] }
  })
}

const PARTS: readonly Part[] = [
  { title: 'Start', pages: ['docs/start.md', ...guides('gpu-workstation', 'from-runpod', 'ready-workers', 'console')] },
  {
    title: 'Do',
    pages: guides(
      'python-worker',
      'testing-workers',
      'load-balancing',
      'images',
      'containers',
      'containers-network',
      'private-registries',
      'gpus',
      'models',
      'volumes',
      'secrets',
      'scaling',
      'cold-starts',
      'what-if',
      'releases',
      'javascript',
      'browser',
      'openai',
      'batch',
      'webhooks',
      'events',
    ),
  },
  {
    title: 'Operate',
    pages: [
      ...guides('production', 'accounts', 'billing', 'isolation', 'postgresql', 'standby', 'kubernetes', 'restart'),
      ...guides('backup', 'upgrade'),
      ...guides('https', 'metrics', 'tracing', 'logs', 'audit', 'workers', 'why', 'on-call'),
      'docs/security.md',
    ],
  },
  {
    title: 'Reference',
    pages: [
      ...reference('commands', 'settings', 'jobs', 'batches', 'management'),
      API_PAGE,
      ...reference('metrics', 'limits', 'compatibility'),
      'packages/worker/README.md',
      'docs/benchmarks.md',
      'CHANGELOG.md',
    ],
  },
  {
    title: 'Inside',
    pages: [
      'ARCHITECTURE.md',
      'CONTRIBUTING.md',
      'SECURITY.md',
      ...internals('job-lifecycle', 'worker-protocol', 'usage', 'schema', 'isolation', 'faults'),
      ...internals('performance', 'simulator', 'tests'),
    ],
  },
]
