/** A worker of BullMQ that takes 16 jobs at a time. Prints 0 when it is ready. */
import { Worker } from 'bullmq'

const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT), maxRetriesPerRequest: null }
const worker = new Worker('bench', async ({ data }) => ({ length: data.input.prompt.length }), {
  connection,
  concurrency: 16,
})
await worker.waitUntilReady()
console.log(0)
