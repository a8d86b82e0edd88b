/** Runs the given test files in this process, one after another. A file that cannot be loaded is a failed test. */
import { resolve } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(resolve(file)).href)
  } catch (error) {
    test(`${file} can be loaded`, () => {
      throw error
    })
  }
}
