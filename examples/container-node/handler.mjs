import { start } from '@runyard/worker'

async function handler({ input }) {
  const { name = 'world' } = input ?? {}
  return { message: `Hello, ${name}!`, node: process.versions.node }
}

await start({ handler })
