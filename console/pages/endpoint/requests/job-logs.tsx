/** The output for a job, live while it runs. */
import { queryString } from '../../../client/api.ts'
import { Log, MAX_LINES } from '../../../parts/log.tsx'

/** The lines of a job. */
export function JobLogs({ endpointId, jobId }: { readonly endpointId: string; readonly jobId: string }) {
  const query = queryString({ job: jobId, tail: MAX_LINES })
  return (
    <section>
      <h3>Log</h3>
      <Log what="job" path={`/v2/serverless/${encodeURIComponent(endpointId)}/logs${query}`} />
    </section>
  )
}
