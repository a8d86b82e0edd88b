/** The options of `create` and `update` by the members of the bodies that they become. */
import type { Field } from '../client/fields.ts'
import { parseCpu, parseGpuMemory, parseScaler, parseScope } from '../client/option-words.ts'

const NAME: Field = { flag: '--name <text>', help: 'name', path: 'name', kind: 'text' }

const GROWN: Field = { flag: '--size <GB>', help: 'new size; it only grows', path: 'size', kind: 'number' }

const CONTAINER: readonly Field[] = [
  {
    flag: '--image <reference>',
    help: 'image reference, or dir:<folder> of this machine',
    path: 'image',
    kind: 'image',
  },
  { flag: '--args <text>', help: 'arguments of the entry point', path: 'args', kind: 'text' },
  { flag: '--disk <GB>', help: 'container disk', path: 'disk', kind: 'number' },
  {
    flag: '--env <NAME=value>',
    help: 'environment variable to add or replace; again for more',
    path: 'env',
    kind: 'pairs',
  },
  { flag: '--ports <list>', help: 'such as 8000/http,9000/tcp', path: 'ports', kind: 'list' },
  {
    flag: '--registry <name>',
    help: 'saved registry credential, by name or id',
    path: 'registry',
    kind: 'text',
    of: 'registries',
  },
]

/** Further options of a change. */
const UNSET_ENV: Field = {
  flag: '--unset-env <NAME>',
  help: 'environment variable to remove; again for more',
  path: 'env',
  kind: 'names',
}

const ENDPOINT: readonly Field[] = [
  NAME,
  ...CONTAINER,
  { flag: '--gpu-count <n>', help: 'GPUs of one worker', path: 'gpu.count', kind: 'number' },
  {
    flag: '--gpu-memory <GB|auto>',
    help: 'share of one GPU for each worker; auto learns it',
    path: 'gpu.memoryGb',
    kind: 'json',
    parse: parseGpuMemory,
  },
  {
    flag: '--cpu <vcpus>',
    help: 'vCPUs of a worker without GPUs, such as 2 or cpu3c:4',
    path: 'cpu',
    kind: 'json',
    parse: parseCpu,
  },
  {
    flag: '--volume <name>',
    help: 'volume; again for more, none for none',
    path: 'networkVolumes',
    kind: 'repeated',
    of: 'volumes',
  },
  {
    flag: '--model <owner/name>',
    help: 'model of Hugging Face; again for more, none for none',
    path: 'modelReferences',
    kind: 'repeated',
  },
  { flag: '--min <n>', help: 'workers at least', path: 'workers.min', kind: 'number' },
  { flag: '--max <n>', help: 'workers at most', path: 'workers.max', kind: 'number' },
  {
    flag: '--idle-timeout <s>',
    help: 'time after which an idle worker ends, such as 5m',
    path: 'workers.idleTimeout',
    kind: 'number',
    unitMs: 1_000,
  },
  {
    flag: '--timeout <ms>',
    help: 'execution timeout of a job; also such as 90s or 10m',
    path: 'timeout',
    kind: 'number',
    unitMs: 1,
  },
  {
    flag: '--scaler <type:value>',
    help: 'QUEUE_DELAY:<seconds> or REQUEST_COUNT:<number>',
    path: 'scaling',
    kind: 'json',
    parse: parseScaler,
  },
  { flag: '--scaling <json>', help: 'as --scaler, in JSON', path: 'scaling', kind: 'json', isHidden: true },
  { flag: '--flashboot <mode>', help: 'OFF, FLASHBOOT or PRIORITY_FLASHBOOT', path: 'flashboot', kind: 'choice' },
  {
    flag: '--priority <level>',
    help: 'low, normal or high: order where room is short',
    path: 'priority',
    kind: 'text',
  },
  {
    flag: '--preemptible <true|false>',
    help: 'true: a higher priority may pause its workers',
    path: 'preemptible',
    kind: 'yes-no',
  },
  {
    flag: '--cors-origins <list>',
    help: 'origins of web pages that may call it',
    path: 'corsOrigins',
    kind: 'list',
  },
  {
    flag: '--domain <name>',
    help: 'host name of a load-balancing endpoint, or none',
    path: 'domain',
    kind: 'nullable',
  },
  {
    flag: '--template <name>',
    help: 'template whose settings it starts from',
    path: 'templateId',
    kind: 'text',
    of: 'templates',
  },
]

const CANARY: Field = {
  flag: '--canary <percent>',
  help: 'share of workers that runs it until it is promoted',
  path: 'rollout.canary',
  kind: 'number',
}

const TEMPLATE: readonly Field[] = [
  NAME,
  ...CONTAINER,
  { flag: '--serverless', help: 'for endpoints', path: 'serverless', kind: 'boolean' },
]

const SECRET_VALUE: readonly Field[] = [
  {
    flag: '--value <@file|->',
    help: 'file with the value, or standard input; asked for unless given',
    path: 'value',
    kind: 'secret',
    question: 'value of the secret',
  },
  { flag: '--description <text>', help: 'its purpose', path: 'description', kind: 'text' },
]

const KEY: readonly Field[] = [
  NAME,
  {
    flag: '--scope <rights>',
    help: 'all, read-only, or areas such as management=read,jobs=write',
    path: 'scope',
    kind: 'json',
    parse: parseScope,
  },
  { flag: '--expires-at <time>', help: 'RFC 3339 time after which it is refused', path: 'expiresAt', kind: 'text' },
  {
    flag: '--requests-per-minute <n>',
    help: "limit of requests in OpenAI's form",
    path: 'limits.requestsPerMinute',
    kind: 'number',
  },
  { flag: '--tokens-per-minute <n>', help: 'limit of their tokens', path: 'limits.tokensPerMinute', kind: 'number' },
  { flag: '--tokens-per-day <n>', help: 'the same for a day of UTC', path: 'limits.tokensPerDay', kind: 'number' },
  {
    flag: '--accounting <true|false>',
    help: 'its streams report their tokens',
    path: 'accounting',
    kind: 'yes-no',
  },
]

/** Options of `create` and `update` by group of commands; null where the group has no `update`. */
export const RESOURCE_OPTIONS = {
  endpoints: {
    create: [
      ...ENDPOINT,
      { flag: '--type <type>', help: 'QUEUE (default) or LOAD_BALANCER', path: 'type', kind: 'choice' },
    ],
    update: [...ENDPOINT, UNSET_ENV, CANARY],
  },
  templates: { create: TEMPLATE, update: [...TEMPLATE, UNSET_ENV] },
  secrets: { create: [NAME, ...SECRET_VALUE], update: SECRET_VALUE },
  keys: {
    create: [
      ...KEY,
      {
        flag: '--account <name>',
        help: 'account that it belongs to, by name or id; for the operator',
        path: 'account',
        kind: 'text',
        of: 'accounts',
      },
      { flag: '--exempt', help: 'without rate limits; for the operator', path: 'exempt', kind: 'boolean' },
    ],
    update: KEY,
  },
  accounts: {
    create: [NAME],
    update: [
      { flag: '--name <text>', help: 'name; for the operator', path: 'name', kind: 'text' },
      {
        flag: '--delete-running-endpoints <true|false>',
        help: 'allow GraphQL to delete endpoints whose workersMin or workersMax is not 0',
        path: 'deleteRunningEndpoints',
        kind: 'yes-no',
      },
      {
        flag: '--limits <json>',
        help: 'all limits of its own in JSON; those that it leaves out are the default',
        path: 'limits',
        kind: 'json',
        isHidden: true,
      },
    ],
  },
  volumes: {
    create: [
      NAME,
      { flag: '--size <GB>', help: 'size', path: 'size', kind: 'number' },
      {
        flag: '--data-center <id>',
        help: 'such as EU-RO-1; runyard catalog datacenters lists them',
        path: 'dataCenter',
        kind: 'text',
      },
    ],
    update: [NAME, GROWN],
  },
  'global-volumes': {
    create: [NAME, { flag: '--size <GB>', help: 'size (default: 4096)', path: 'size', kind: 'number' }],
    update: [NAME, GROWN],
  },
  registries: {
    create: [
      NAME,
      { flag: '--username <text>', help: 'user of the registry', path: 'username', kind: 'text' },
      {
        flag: '--password <@file|->',
        help: 'file with the password or token, or standard input; asked for unless given',
        path: 'password',
        kind: 'secret',
        question: 'password or token of the registry',
      },
    ],
    update: null,
  },
} as const satisfies Readonly<Record<string, { create: readonly Field[]; update: readonly Field[] | null }>>
