import { HTTP_URL, optional, PATH, setting, wholeNumber } from './setting.ts'

/** The settings of the models that workers find on their disk. */
export const MODEL_SETTINGS = {
  /** Null for one in the data directory. */
  modelCache: optional(
    '--model-cache',
    '<folder>',
    PATH,
    'folder for the models that endpoints name in modelReferences (default: models in the data directory)',
  ),
  /** Null for half of what is free, at most 200. */
  modelCacheGb: optional(
    '--model-cache-size',
    '<GB>',
    wholeNumber(1, 1_000_000),
    'how much it may hold; what was used longest ago goes first (default: half of what is free, at most 200)',
  ),
  modelHub: setting(
    '--hf-endpoint',
    '<url>',
    'https://huggingface.co',
    HTTP_URL,
    'hub of these models, such as a mirror of Hugging Face',
  ),
}
