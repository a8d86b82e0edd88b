/** The five parts of the site of the documentation, and the pages of each in the order in which they are read. */

/** Pages that belong together. */
export interface Group {
  /** Title of the group; null in a part without groups. */
  readonly title: string | null
  /** Paths from the root of the repository. */
  readonly pages: readonly string[]
}

/** A part of the site. */
export interface Part {
  readonly title: string
  /** Its contents, for the front page. */
  readonly about: string
  readonly groups: readonly Group[]
}

/** The page of the OpenAPI document, which is not a file of the repository. */
export const API_PAGE = 'docs/reference/api.md'

/** Paths of pages that must be in a part. */
const PLACED = /^docs\/(?:(?:guides|reference|internals)\/)?[^/]+\.md$/

/** Pages in no part: the list of all pages. */
const UNPLACED = ['docs/README.md']

/** The paths of all pages of a part, in order. */
export function listPages({ groups }: Part): string[] {
  return groups.flatMap(({ pages }) => pages)
}

/** Mistakes in the parts of a repository with these files, as sentences. */
export function partMistakes(files: readonly string[]): string[] {
  const placed = PARTS.flatMap(listPages)
  const missing = files.filter(path => PLACED.test(path) && !placed.includes(path) && !UNPLACED.includes(path))
  const stray = placed.filter(path => path !== API_PAGE && !files.includes(path))
  return [
    ...missing.map(path => `${path} is in no part of the site: name it in scripts/site/parts.ts`),
    ...stray.map(path => `scripts/site/parts.ts names ${path}, which is not there`),
    ...placed.filter((path, at) => placed.indexOf(path) !== at).map(path => `${path} is in two parts of the site`),
  ]
}

const guides = (...names: string[]) => names.map(name => `docs/guides/${name}.md`)
const reference = (...names: string[]) => names.map(name => `docs/reference/${name}.md`)
const internals = (...names: string[]) => names.map(name => `docs/internals/${name}.md`)

/** The parts, with each page of the documentation. */
export const PARTS: readonly Part[] = [
  {
    title: 'Start',
    about: 'From nothing to a job of your own; a workstation with GPUs; from RunPod, and back.',
    groups: [
      {
        title: null,
        pages: ['docs/start.md', ...guides('gpu-workstation', 'from-runpod', 'ready-workers', 'console')],
      },
    ],
  },
  {
    title: 'Guides',
    about: 'Handlers, servers, images, GPUs, models, scaling, releases, clients.',
    groups: [
      {
        title: 'Workers',
        pages: guides(
          'python-worker',
          'apps',
          'testing-workers',
          'load-balancing',
          'images',
          'dev-sessions',
          'containers',
          'containers-network',
          'private-registries',
        ),
      },
      {
        title: 'Resources of workers',
        pages: guides('gpus', 'models', 'volumes', 's3', 'secrets'),
      },
      {
        title: 'Scaling and releases',
        pages: guides('scaling', 'cold-starts', 'what-if', 'releases'),
      },
      {
        title: 'Clients',
        pages: guides('javascript', 'browser', 'openai', 'batch', 'webhooks', 'events', 'alerts'),
      },
    ],
  },
  {
    title: 'Operate',
    about: 'Install, HTTPS, users, backup, upgrade, monitor, troubleshoot.',
    groups: [
      {
        title: 'Install',
        pages: guides('install', 'https', 'three-machines', 'kubernetes', 'postgresql', 'standby', 'production'),
      },
      {
        title: 'Users and security',
        pages: [...guides('accounts', 'audit', 'isolation'), 'docs/security.md'],
      },
      {
        title: 'Backup and upgrade',
        pages: guides('backup', 'upgrade', 'restart', 'clocks'),
      },
      {
        title: 'Monitor',
        pages: guides('metrics', 'tracing', 'logs', 'workers', 'billing'),
      },
      {
        title: 'Troubleshoot',
        pages: guides('troubleshooting', 'why', 'on-call'),
      },
    ],
  },
  {
    title: 'Reference',
    about: 'Commands, settings, the API, metrics, limits.',
    groups: [
      {
        title: null,
        pages: [
          ...reference('commands', 'settings', 'jobs', 'batches', 'management'),
          API_PAGE,
          ...reference('metrics', 'limits', 'compatibility'),
          'packages/worker/README.md',
          'docs/benchmarks.md',
          'CHANGELOG.md',
        ],
      },
    ],
  },
  {
    title: 'Internals',
    about: 'How it is made, what is promised, how it is tested.',
    groups: [
      {
        title: null,
        pages: [
          'ARCHITECTURE.md',
          'CONTRIBUTING.md',
          'SECURITY.md',
          ...internals(
            'terms',
            'places',
            'walls',
            'job-lifecycle',
            'worker-protocol',
            'usage',
            'schema',
            'isolation',
            'doors',
            'faults',
          ),
          ...internals('performance', 'simulator', 'tests', 'gpu-proof'),
        ],
      },
    ],
  },
]
