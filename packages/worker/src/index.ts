export {
  type DownloadedFile,
  type DownloadFileOptions,
  type DownloadOptions,
  downloadFile,
  downloadFiles,
  removeDownloads,
} from './download.ts'
export { type FitnessCheck, registerFitnessCheck } from './fitness.ts'
export { type Level, type Log, log } from './log.ts'
export type { SchemaIssue, SchemaResult, StandardSchema } from './standard-schema.ts'
export { start } from './start.ts'
export type { Context, Failure, Handler, Job, Returned, StartOptions } from './types.ts'
export { type Bucket, type UploadOptions, uploadBytes, uploadFile, uploadImage } from './upload.ts'
export { version } from './version.ts'
