/** The command line's entry point: `runyard <command>`. One file per command beside this one. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
const { runCommandLine } = await import('./program.ts')
await runCommandLine(process.argv)
// Exit explicitly: handles that a failed command left open must not keep the process alive.
if (process.exitCode !== undefined && process.exitCode !== 0) process.exit()
