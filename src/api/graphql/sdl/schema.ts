import { accountSdl } from './account.ts'
import { appsSdl } from './apps.ts'
import { catalogSdl } from './catalog.ts'
import { endpointSdl } from './endpoints.ts'
import { operationSdl } from './operations.ts'
import { templateSdl } from './templates.ts'
import { unsupportedSdl } from './unsupported.ts'

/**
 * The GraphQL schema, written by hand; names, types and nullability are those that RunPod's clients send.
 * scripts/schema.ts prints it.
 */
export const typeDefs: readonly string[] = [
  ...[operationSdl, accountSdl, endpointSdl, templateSdl, appsSdl, catalogSdl, unsupportedSdl].map(part =>
    part.trim().replaceAll(/^ {2}/gm, ''),
  ),
]
