/** A graphile-worker that takes 16 jobs at a time, and stores their results in a table. Prints 0 when it is ready. */
import { Logger, run } from 'graphile-worker'

await run({
  connectionString: process.env.DATABASE_URL,
  concurrency: 16,
  maxPoolSize: 20,
  logger: new Logger(() => () => {}),
  taskList: {
    async job({ id, input }, { query }) {
      const output = JSON.stringify({ length: input.prompt.length })
      const sql = `WITH kept AS (INSERT INTO results (job_id, output) VALUES ($1, $2) RETURNING job_id, output)
        SELECT pg_notify('results', job_id || ' ' || output) FROM kept`
      await query(sql, [id, output])
    },
  },
})
console.log(0)
