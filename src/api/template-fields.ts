/** The names of the fields of a template in the three dialects, with their schemas. */
import { z } from '@hono/zod-openapi'
import {
  ENV_NAME,
  MAX_CUDA_VERSIONS,
  MAX_ENV_VARIABLES,
  MAX_PORTS,
  MAX_TEXT,
  PORT,
  type PortLabel,
  type TemplateInput,
} from '../core/endpoints/template.ts'
import { listItems } from '../core/text-parts.ts'
import { type FieldMembers, graphql, rest, v1 } from './dialect.ts'
import { CudaVersion, Id, text } from './rest/schemas/common.ts'

/** An image reference, or `dir:<path>`. */
export const Image = text(1_000)

/**
 * Rules of names and values are checked elsewhere, with sentences that name the variable. The document shows the
 * rules.
 */
const ENVIRONMENT_KEYWORDS = { propertyNames: { pattern: ENV_NAME.source }, maxProperties: MAX_ENV_VARIABLES }
const EnvironmentValue = z.string().openapi({ maxLength: MAX_TEXT, pattern: '^[^\\u0000]*$' })
const Environment = z.record(z.string(), EnvironmentValue).openapi(ENVIRONMENT_KEYWORDS)
/** An addition to the public contract: variables to add or replace; null removes one, and the others stay. */
export const EnvironmentChanges = z.record(z.string(), EnvironmentValue.nullable()).openapi(ENVIRONMENT_KEYWORDS)

const Category = z.enum(['NVIDIA', 'CPU', 'AMD']).openapi('TemplateCategory')
const CudaVersions = z.array(CudaVersion).max(MAX_CUDA_VERSIONS)
const Texts = z.array(z.string())

/** A text of version 1. */
export const Text = z.string().max(65_536)
/** A name of version 1. */
export const ShortText = z.string().min(1).max(191)
/** Variables in version 1. */
export const Variables = z.record(z.string(), z.string())

/** A variable of GraphQL. */
export interface Variable {
  readonly key: string
  readonly value: string
}

/** Variables from the list that clients of GraphQL send. */
export function variablesIn(list: readonly (Variable | null)[]): Record<string, string> {
  return Object.fromEntries(list.flatMap(variable => (variable === null ? [] : [[variable.key, variable.value]])))
}

/** Variables as GraphQL shows them. */
export function variableList(env: Readonly<Record<string, string>>): Variable[] {
  return Object.entries(env).map(([key, value]) => ({ key, value }))
}

/** Schemas of a member that a request may leave out. */
function optional<Given extends z.ZodType, Shown extends z.ZodType>(given: Given, shown: Shown) {
  return { created: given.optional(), changed: given.optional(), shown }
}

/** Schemas of a flag. */
function flag(fallback: boolean) {
  return { created: z.boolean().default(fallback), changed: z.boolean().optional(), shown: z.boolean() }
}

/** The members of the fields that an endpoint of REST version 2 has, too, in the order in which bodies have them. */
export const CONTAINER_MEMBERS = {
  args: {
    rest: rest('args', optional(z.string().max(MAX_TEXT), z.string())),
    v1: { name: 'dockerStartCmd' },
    graphql: graphql('dockerArgs', 'String'),
  },
  diskGb: {
    rest: rest('disk', optional(z.int().min(1).max(1_000_000), z.int().min(1))),
    v1: v1('containerDiskInGb', z.int().min(1).optional()),
    graphql: graphql('containerDiskInGb', 'Int'),
  },
  env: {
    rest: rest('env', optional(Environment, Variables)),
    v1: v1('env', Variables.optional()),
    graphql: graphql('env', '[EnvironmentVariable]', {
      read: variablesIn,
      show: variableList,
      input: '[EnvironmentVariableInput]',
    }),
  },
  image: {
    rest: rest('image', optional(Image, z.string())),
    v1: v1('imageName', Text.min(1).optional()),
    graphql: graphql('imageName', 'String', {
      aboutInput: "dir:path for a folder on the server's machine, else an image reference.",
    }),
  },
  ports: {
    rest: rest('ports', optional(z.array(z.string().openapi({ pattern: PORT.source })).max(MAX_PORTS), Texts)),
    v1: v1('ports', z.array(z.string()).max(50).optional()),
    graphql: graphql('ports', 'String', {
      read: (sent: string) => listItems(sent, ','),
      show: (ports: readonly string[]) => ports.join(','),
      about: 'A comma list of port/protocol.',
      aboutInput: '',
    }),
  },
  registry: {
    rest: rest('registry', optional(Id.nullable(), z.string().nullable())),
    v1: v1('containerRegistryAuthId', z.string().max(191).nullable().optional(), sent =>
      sent === undefined ? undefined : sent || null,
    ),
    graphql: graphql('containerRegistryAuthId', 'String', { read: (sent: string) => sent || null }),
  },
} satisfies Partial<Readonly<Record<keyof TemplateInput, FieldMembers>>>

/** The members of the other fields of a template. */
export const OWN_MEMBERS = {
  name: {
    rest: rest('name'),
    v1: v1('name', ShortText.optional()),
    graphql: graphql('name', 'String!', { aboutInput: 'Unique in the account.', about: '', input: 'String' }),
  },
  volumeGb: {
    rest: { name: 'mounts.persistent.size' },
    v1: v1('volumeInGb', z.int().min(0).optional()),
    graphql: graphql('volumeInGb', 'Int'),
  },
  volumeMountPath: {
    rest: null,
    v1: v1('volumeMountPath', Text.optional(), sent => sent || undefined),
    graphql: graphql('volumeMountPath', 'String', { read: (sent: string) => sent || undefined }),
  },
  portLabels: {
    rest: null,
    v1: null,
    graphql: graphql('portsConfig', '[PortConfig]', {
      read: (sent: readonly (PortLabel | null)[]) => sent.filter(label => label !== null),
      input: '[PortConfigInput]',
    }),
  },
  readme: { rest: null, v1: v1('readme', Text.optional()), graphql: graphql('readme', 'String') },
  isServerless: {
    rest: rest('serverless', flag(false)),
    v1: v1('isServerless', z.boolean().optional()),
    graphql: graphql('isServerless', 'Boolean'),
  },
  isPublic: {
    rest: rest('public', flag(false)),
    v1: v1('isPublic', z.boolean().optional()),
    graphql: graphql('isPublic', 'Boolean'),
  },
  category: {
    rest: rest('category', {
      created: Category.default('NVIDIA').openapi({ default: 'NVIDIA' }),
      changed: Category.optional(),
      shown: Category,
    }),
    v1: v1('category', z.enum(['NVIDIA', 'CPU', 'AMD']).optional()),
    graphql: graphql('category', 'String', {
      read: (sent: string) => (sent === 'GPU' ? 'NVIDIA' : sent),
      input: 'TemplateCategory',
    }),
  },
  startSsh: { rest: rest('startSsh', flag(true)), v1: null, graphql: graphql('startSsh', 'Boolean') },
  startJupyter: { rest: rest('startJupyter', flag(true)), v1: null, graphql: graphql('startJupyter', 'Boolean') },
  allowedCudaVersions: { rest: rest('allowedCudaVersions', optional(CudaVersions, Texts)), v1: null, graphql: null },
} satisfies Partial<Readonly<Record<keyof TemplateInput, FieldMembers>>>

/**
 * The members of each field of a template. The command line in version 1, and the volume in version 2, are written by
 * hand.
 */
export const TEMPLATE_MEMBERS = { ...CONTAINER_MEMBERS, ...OWN_MEMBERS } satisfies Readonly<
  Record<keyof TemplateInput, FieldMembers>
>
