/**
 * The walls: which folder may import what, type imports included. A change of this table needs a record in
 * `docs/adr/`. A folder may always import itself. Words are separated by spaces; `!x` excludes x.
 */

/** One row of the table. The first row whose `folder` has a file applies to it. */
export interface Wall {
  folder: string
  /** Allowed places of the project, by their names in `places`. */
  project: string
  /** Allowed npm packages, as globs over their names. */
  packages: string
  /** Allowed modules of Node by the first part of their name (`fs` includes `fs/promises`), or `any`. */
  builtins: string
  /** The reason, where the folder's purpose does not give it. */
  why?: string
}

/** The places that the table names, as globs over paths from the root of the repository. */
export const places: Record<string, string> = {
  anything: '**',
  core: 'src/core/**',
  disk: 'src/disk/**',
  crypto: 'src/crypto/**',
  ports: 'src/ports/**',
  services: 'src/services/**',
  control: 'src/control/**',
  api: 'src/api/**',
  gateway: 'src/gateway/**',
  'gateway/lines': 'src/gateway/queue/request-queue*.ts',
  'gateway/reservation': 'src/gateway/queue/reservation.ts',
  'gateway/connection': 'src/gateway/http1/{worker-connection,response-parser,response-head,fields}.ts',
  server: 'src/server/**',
  store: 'src/store/**',
  'store/postgres': 'src/store/engines/postgres*',
  relay: 'src/relay/**',
  pump: 'src/pump/**',
  drivers: 'src/drivers/**',
  'drivers/process-table': 'src/drivers/base/process-table.ts',
  'drivers/process-marks': 'src/drivers/process/process-marks.ts',
  'drivers/cage': 'src/drivers/cage/**',
  'drivers/docker': 'src/drivers/docker/**',
  'drivers/kubernetes': 'src/drivers/kubernetes/**',
  'drivers/mock': 'src/drivers/mock/**',
  system: 'src/system/**',
  'system/notifier': 'src/system/coordination/*notifier*',
  'system/leader': 'src/system/coordination/*leader*',
  'system/lease': 'src/system/coordination/lease-*.ts',
  'system/server-clock': 'src/system/server-clock.ts',
  'services/server-time': 'src/services/observing/server-time.ts',
  doctor: 'src/doctor/**',
  app: 'src/{app.ts,app/**}',
  main: 'src/main/**',
  config: 'src/config/**',
  events: 'src/events.ts',
  cli: 'src/cli/**',
  sim: 'sim/**',
  'sim/run': 'sim/run.ts',
  worker: 'packages/worker/**',
  'worker/test': 'packages/worker/test/**',
  'worker/build': 'packages/worker/build.mjs',
  console: 'console/**',
  test: 'test/**',
  bench: 'bench/**',
  examples: 'examples/**',
  scripts: 'scripts/**',
}

const simulated =
  'app gateway/lines gateway/reservation config events core ports store !store/postgres drivers/mock drivers/kubernetes system/notifier system/leader system/lease system/server-clock services/server-time'

/** The table. */
export const walls: Wall[] = [
  { folder: 'core', project: '', packages: 'zod', builtins: '' },
  { folder: 'ports', project: 'core events', packages: '', builtins: '' },
  {
    folder: 'disk',
    project: '',
    packages: '',
    builtins: 'fs path net module',
    why: 'durable files are written here for all folders, see docs/adr/0026-durable-files.md; net: sockets with names in the file system; module: the compile cache',
  },
  {
    folder: 'crypto',
    project: '',
    packages: '',
    builtins: 'crypto',
    why: 'secrets are compared by the server and by the relay, which have no other folder in common, see docs/adr/0082-what-servers-of-a-database-agree-on.md',
  },
  { folder: 'services', project: 'core ports events', packages: '', builtins: '' },
  { folder: 'control', project: 'core ports events services', packages: '', builtins: '' },
  {
    folder: 'api',
    project: 'core ports events services',
    packages: 'hono @hono/zod-openapi zod graphql graphql-http @graphql-yoga/render-graphiql @escape.tech/*',
    builtins: 'crypto zlib',
    why: 'crypto: the entity tag of a response is a hash of it, and requests over S3 are signed; zlib: CRC-32 of their bodies; schemas are written with zod; the limits on depth and cost of GraphQL queries are rules of @escape.tech',
  },
  {
    folder: 'gateway',
    project: 'core ports events services',
    packages: '',
    builtins: 'http net stream',
    why: 'connections to workers are its own, see docs/adr/0021-connections-to-workers.md',
  },
  {
    folder: 'server',
    project: 'api gateway core ports events disk crypto',
    packages: '@hono/node-server',
    builtins: 'http https net tls stream fs crypto',
    why: 'a listener reports through ports and events, so it needs their types; crypto: certificates',
  },
  {
    folder: 'store',
    project: 'core ports events disk',
    packages: 'pg',
    builtins: 'sqlite worker_threads fs path url crypto zlib',
    why: 'url: the files of the schema and of the thread are found beside the module; crypto: each entry of the audit log has the hash of the one before; zlib: CRC-32 of what damage may change',
  },
  {
    folder: 'relay',
    project: 'core disk crypto drivers/process-table gateway/connection',
    packages: '',
    builtins: 'http net fs path url crypto stream child_process',
    why: 'a process of its own that must start fast; its server starts it, and both know it by its identity; gateway/connection: it is a client of its server as the gateway is one of workers, see docs/adr/0012-relay.md',
  },
  {
    folder: 'pump',
    project: 'core ports disk drivers/process-table',
    packages: '',
    builtins: 'net fs path child_process util crypto',
    why: 'a process of its own that must start fast; its server starts it, and both know it by its identity',
  },
  {
    folder: 'drivers',
    project: 'core ports events disk',
    packages: '@balena/dockerignore tar-fs',
    builtins: 'child_process fs os path net stream util url http https module',
    why: 'http, https: the clients of container engines and of Kubernetes; url: a program is found beside the module',
  },
  {
    folder: 'system',
    project: 'core ports events store disk drivers/process-table',
    packages: 'nodemailer pino prom-client @opentelemetry/* @huggingface/hub @peculiar/asn1-* tar',
    builtins: 'any',
    why: 'the table of processes says which of them live and are stopped, see docs/adr/0097-suspended-cuda-processes.md',
  },
  {
    folder: 'app',
    project: 'core ports events config services control api gateway',
    packages: '',
    builtins: '',
  },
  { folder: 'main', project: 'anything !sim !console !test', packages: '', builtins: 'any' },
  {
    folder: 'config',
    project: 'core',
    packages: '',
    builtins: '',
    why: 'limits and defaults of settings are the constants of core',
  },
  {
    folder: 'events',
    project: 'core',
    packages: '',
    builtins: '',
    why: 'the fields of events have the branded types of core',
  },
  {
    folder: 'doctor',
    project:
      'core ports config disk drivers/cage drivers/process-marks drivers/process-table drivers/docker drivers/kubernetes store system',
    packages: '',
    builtins: 'any',
    why: 'it checks everything that a server would use, without one; core decides what is wrong',
  },
  {
    folder: 'cli',
    project: 'core config main disk doctor drivers/docker',
    packages: 'commander',
    builtins: 'any',
    why: 'building an image and checking the machine work without a server',
  },
  {
    folder: 'sim/run',
    project: `sim ${simulated}`,
    packages: 'fast-check',
    builtins: 'any',
    why: 'the runner is a command: it reads arguments and writes files of failing seeds',
  },
  { folder: 'sim', project: simulated, packages: 'fast-check', builtins: '' },
  {
    folder: 'console',
    project: '',
    packages: 'preact @preact/signals uplot',
    builtins: '',
    why: 'it runs in browsers and knows the server by its public API alone',
  },
  ...['worker/test', 'worker/build', 'test', 'bench', 'examples', 'scripts'].map(folder => ({
    folder,
    project: 'anything',
    packages: '* @*/*',
    builtins: 'any',
  })),
  {
    folder: 'worker',
    project: '',
    packages: 'aws4fetch yauzl',
    builtins: 'http https net dns stream process fs path crypto async_hooks util zlib',
    why: 'it also calls servers behind TLS, moves and unpacks files of jobs, serves jobs for development, and gives each line that a handler prints its job; see docs/adr/0028-worker-package.md',
  },
]

/**
 * Walls between the subjects of a floor: which other subjects each of its folders may import. Every subject may
 * import the files at the top of the floor, which import no subject. There are no cycles: a subject may import only
 * those above it in its table.
 */
export const subjects: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'src/core': {
    json: '',
    audit: '',
    accounts: '',
    secrets: '',
    hardware: '',
    models: '',
    files: '',
    apps: '',
    endpoints: 'hardware json secrets models',
    workers: 'hardware endpoints models',
    jobs: 'json',
    scaling: 'hardware endpoints workers',
    placement: 'hardware endpoints workers scaling',
    observing: 'hardware models endpoints workers jobs scaling placement',
    balancing: 'endpoints workers scaling placement observing',
    billing: 'hardware endpoints workers jobs',
    alerts: 'observing',
    openai: 'json jobs',
    bodies: 'json jobs openai',
  },
  'src/services': {
    audit: '',
    accounts: '',
    hardware: '',
    billing: '',
    secrets: 'accounts',
    models: '',
    files: 'accounts',
    jobs: 'accounts',
    apps: 'accounts',
    endpoints: 'accounts',
    workers: 'audit accounts secrets jobs models apps endpoints',
    balancing: 'endpoints',
    observing: 'hardware models workers balancing',
    openai: 'balancing',
    alerts: 'accounts observing',
  },
  // Drivers stand side by side: what they share lies below them.
  'src/drivers': {
    base: '',
    mock: '',
    cage: 'base',
    process: 'base cage',
    docker: 'base',
    kubernetes: 'base',
  },
}
