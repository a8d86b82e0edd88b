/** RunPod's MCP server; tests that need it are skipped where it is not installed. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const WANTED = '4.0.0'

/** Its program, or the reason of its absence. */
export const mcpServer = findServer()

function findServer(): { program: string; skip: string | false } {
  const folder = join(process.env.RUNYARD_TEST_MCP ?? '', 'node_modules/@runpod/mcp-server')
  const problem = `RUNYARD_TEST_MCP names no folder with @runpod/mcp-server@${WANTED} installed`
  if (process.env.RUNYARD_TEST_MCP !== undefined && versionIn(folder) === WANTED) {
    return { program: join(folder, 'dist/stdio.mjs'), skip: false }
  }
  if (process.env.RUNYARD_NO_SKIP === '1') throw new Error(problem)
  return { program: '', skip: problem }
}

function versionIn(folder: string): string | null {
  const file = join(folder, 'package.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : null
}
