/** The origins that answers mention, without a trailing slash; known once the server listens. */
export interface Addresses {
  /** Of REST and GraphQL. */
  readonly publicUrl: string
  /** Of the job operations. */
  readonly queueUrl: string
}
