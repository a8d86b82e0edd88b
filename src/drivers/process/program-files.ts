import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'

/** Whether there is something at a path. */
export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}

/** Whether a path is a file that may be run. */
export async function isProgram(path: string): Promise<boolean> {
  const mayRun = access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  const found = await stat(path).catch(() => null)
  return found?.isFile() === true && mayRun
}
