import { start } from '@runyard/worker'

interface Input {
  readonly name?: string
}

interface Output {
  readonly message: string
}

start<Input, Output>({
  handler: async ({ input }) => {
    return { message: `Hello, ${input.name ?? 'you'}!` }
  },
})
