/** The five parts of the site of the documentation, and the pages of each in the order in which they are read. */

/** A page of a part. */
export interface Entry {
  /** Its path from the root of the repository. */
  readonly source: string
  /** What the list beside the pages calls it; null for its title. */
  readonly label: string | null
}

/** Pages that belong together. */
export interface Group {
  /** Null where the part needs no groups. */
  readonly title: string | null
  readonly pages: readonly Entry[]
}

/** A part of the site. */
export interface Part {
  readonly title: string
  /** What is in it, for the front page. */
  readonly about: string
  readonly groups: readonly Group[]
}

/** The page that is made of the OpenAPI document, which is no file of the repository. */
export const API_PAGE = 'docs/reference/api.md'

/** Where pages lie of which each has to be in a part. */
const PLACED = /^docs\/(?:(?:guides|reference|internals)\/)?[^/]+\.md$/

/** Pages that are no part's: the list of all. */
const UNPLACED = ['docs/README.md']

/** The paths of all pages of a part, in order. */
export function pagesOf({ groups }: Part): string[] {
  return groups.flatMap(({ pages }) => pages.map(({ source }) => source))
}

/** What is wrong with the parts of a repository with these files, as sentences. */
export function partMistakes(files: readonly string[]): string[] {
  const placed = PARTS.flatMap(pagesOf)
  const missing = files.filter(path => PLACED.test(path) && !placed.includes(path) && !UNPLACED.includes(path))
  const stray = placed.filter(path => path !== API_PAGE && !files.includes(path))
  return [
    ...missing.map(path => `${path} is in no part of the site: name it in scripts/site/parts.ts`),
    ...stray.map(path => `scripts/site/parts.ts names ${path}, which is not there`),
    ...placed.filter((path, at) => placed.indexOf(path) !== at).map(path => `${path} is in two parts of the site`),
  ]
}

const page = (source: string, label: string | null = null): Entry => ({ source, label })
/** Their titles are questions, so each has a label. */
const guides = (labels: Readonly<Record<string, string>>) =>
  Object.entries(labels).map(([name, label]) => page(`docs/guides/${name}.md`, label))
const reference = (...names: string[]) => names.map(name => page(`docs/reference/${name}.md`))
const internals = (...names: string[]) => names.map(name => page(`docs/internals/${name}.md`))

/** The parts, with each page of the documentation. */
export const PARTS: readonly Part[] = [
  {
    title: 'Start',
    about: 'From nothing to a job of your own; a workstation with GPUs; from RunPod, and back.',
    groups: [
      {
        title: null,
        pages: [
          page('docs/start.md', 'The first job'),
          ...guides({
            'gpu-workstation': 'A workstation with GPUs',
            'from-runpod': 'From RunPod, and back',
            'ready-workers': 'vLLM, ComfyUI, Whisper',
            console: 'The console',
          }),
        ],
      },
    ],
  },
  {
    title: 'Do',
    about: 'Handlers, servers, images, GPUs, models, scaling, releases, clients.',
    groups: [
      {
        title: 'Workers',
        pages: guides({
          'python-worker': 'Python handlers',
          'testing-workers': 'Testing a worker',
          'load-balancing': 'HTTP servers',
          images: 'Images from a folder',
          containers: 'Containers',
          'containers-network': 'The network of containers',
          'private-registries': 'Private registries',
        }),
      },
      {
        title: 'What workers get',
        pages: guides({ gpus: 'GPUs', models: 'Models', volumes: 'Volumes', secrets: 'Secrets' }),
      },
      {
        title: 'How many, and which',
        pages: guides({
          scaling: 'Scaling',
          'cold-starts': 'Cold starts',
          'what-if': 'What another setting costs',
          releases: 'Releases and rollback',
        }),
      },
      {
        title: 'Clients',
        pages: guides({
          javascript: 'JavaScript',
          browser: 'Web pages',
          openai: 'OpenAI clients',
          batch: 'Batches',
          webhooks: 'Webhooks',
          events: 'Events',
        }),
      },
    ],
  },
  {
    title: 'Operate',
    about: 'Install, HTTPS, users, backup, upgrade, monitor, and what to do about each cause of waiting.',
    groups: [
      {
        title: 'Install',
        pages: guides({
          install: 'As a service',
          https: 'HTTPS',
          'three-machines': 'Three machines',
          kubernetes: 'On Kubernetes',
          postgresql: 'On PostgreSQL',
          standby: 'A second server',
          production: 'Production checklist',
        }),
      },
      {
        title: 'Users and safety',
        pages: [
          ...guides({
            accounts: 'Users, keys, quotas',
            audit: 'Who changed what',
            isolation: 'Keeping workers apart',
          }),
          page('docs/security.md', 'Security'),
        ],
      },
      {
        title: 'Backup and upgrade',
        pages: guides({
          backup: 'Backup and restore',
          upgrade: 'Upgrades',
          restart: 'Restarts',
          clocks: 'Steps of the clock',
        }),
      },
      {
        title: 'Monitor',
        pages: guides({
          metrics: 'Metrics and alerts',
          tracing: 'Traces',
          logs: 'Logs',
          workers: 'Workers',
          billing: 'Cost',
        }),
      },
      {
        title: 'Troubleshoot',
        pages: guides({ troubleshooting: 'Causes and mends', why: 'How why answers', 'on-call': 'On call' }),
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
          page(API_PAGE),
          ...reference('metrics', 'limits', 'compatibility'),
          page('packages/worker/README.md'),
          page('docs/benchmarks.md'),
          page('CHANGELOG.md'),
        ],
      },
    ],
  },
  {
    title: 'Inside',
    about: 'How it is made, what is promised, how it is tested.',
    groups: [
      {
        title: null,
        pages: [
          page('ARCHITECTURE.md'),
          page('CONTRIBUTING.md'),
          page('SECURITY.md'),
          ...internals('job-lifecycle', 'worker-protocol', 'usage', 'schema', 'isolation', 'doors', 'faults'),
          ...internals('performance', 'simulator', 'tests', 'gpu-proof'),
        ],
      },
    ],
  },
]
