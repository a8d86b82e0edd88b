import { z } from '@hono/zod-openapi'
import { ALIAS_NAME, MODEL_ALIASES } from '../../../core/openai/model-alias.ts'
import { MAX_MODEL_NAME, MODEL_STATES } from '../../../core/openai/model-names.ts'
import { DateTime } from './common.ts'

const AliasName = z.string().min(1).max(128).regex(ALIAS_NAME, 'must have letters, digits and . _ : / @ + - only')

/** Another name of models. */
export const ModelAliasBody = z
  .object({
    name: z.string(),
    endpoints: z.array(z.object({ id: z.string(), name: z.string() })),
    createdAt: DateTime,
  })
  .openapi('ModelAlias')

/** The shape of {@link ModelAliasBody}. */
export type ModelAliasBody = z.infer<typeof ModelAliasBody>

/** All other names of models of an account. */
export const ModelAliasList = z.object({ aliases: z.array(ModelAliasBody) }).openapi('ListModelAliasesResponse')

/** Body that saves one: endpoints by name or id, the preferred one first. */
export const SaveModelAlias = {
  name: AliasName,
  endpoints: z.array(z.string().min(1).max(MAX_MODEL_NAME)).min(1).max(MODEL_ALIASES.endpoints),
}

/** The query that names one. */
export const AliasQuery = { name: AliasName }

/** Body that names a model. */
export const WarmModel = { model: z.string().min(1).max(MAX_MODEL_NAME) }

/** The endpoint of a model, with its state before the call. */
export const WarmedModel = z
  .object({ id: z.string(), name: z.string(), state: z.enum(MODEL_STATES) })
  .openapi('WarmedModel')
