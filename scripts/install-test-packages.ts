/**
 * Installs the packages of `test/package.json`. They may need a newer Node than the one that runs `npm ci`, so npm
 * runs on the pinned Node for them. npm calls this after it has installed all other packages (`prepare`).
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../test', import.meta.url))
const npm = process.env.npm_execpath
const leavesOut = (process.env.npm_config_omit ?? '').split(/[\s,]+/).includes('dev')

if (npm !== undefined && !leavesOut && existsSync(`${folder}/package.json`) && !isInstalled()) {
  const { status } = spawnSync(process.execPath, [npm, 'ci', '--silent', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
  })
  process.exitCode = status ?? 1
}

/** True if all packages are installed in the version of package.json. */
function isInstalled(): boolean {
  const { devDependencies } = readJson(`${folder}/package.json`) as { devDependencies: Record<string, string> }
  return Object.entries(devDependencies).every(([name, version]) => {
    const file = `${folder}/node_modules/${name}/package.json`
    return existsSync(file) && (readJson(file) as { version: string }).version === version
  })
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}
