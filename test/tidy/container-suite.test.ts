import { test } from 'node:test'
import {
  containerFiles,
  IN_EVERY_RUN,
  OF_CONTAINERS,
  WITH_CONTAINERS,
  WITHOUT_CONTAINERS,
} from '../wire/support/container-suite.ts'
import { assertNone, files, read } from './files.ts'

const ofContainers = (path: string) => OF_CONTAINERS.some(name => path.startsWith(`test/wire/${name}`))
const wire = files.filter(path => /^test\/wire\/[^/]+\/[^/]+\.test\.ts$/.test(path) && !ofContainers(path))
const pathOf = (name: string) => `test/wire/${name}.test.ts`

test('every wire test says whether it runs with workers in containers', () => {
  const named = [...Object.keys(WITH_CONTAINERS), ...Object.keys(WITHOUT_CONTAINERS)].map(pathOf)
  const missing = wire.filter(path => !named.includes(path)).map(path => `${path} is in no table`)
  const gone = named
    .filter(path => !wire.includes(path))
    .map(path => `${path} is in a table, and there is no such file`)
  const twice = named.filter((path, at) => named.indexOf(path) !== at).map(path => `${path} is in both tables`)
  assertNone([...missing, ...gone, ...twice])
})

test('what is left out with containers is the name of a test, and of no other', () => {
  const named: (readonly [file: string, name: string])[] = [
    ...Object.entries(WITH_CONTAINERS).flatMap(([file, names]) =>
      Object.keys(names).map(name => [file, name] as const),
    ),
    ...Object.entries(IN_EVERY_RUN).flatMap(([file, names]) => names.map(name => [file, name] as const)),
  ]
  const mistakes = named.flatMap(([file, name]) => {
    const found = containerFiles.filter(path => wire.includes(path) && read(path).includes(name))
    return found.length === 1 && found[0] === pathOf(file) ? [] : [`'${name}' of ${file} is in ${found.join(', ')}`]
  })
  const gone = Object.keys(IN_EVERY_RUN).filter(file => !(file in WITH_CONTAINERS))
  assertNone([...mistakes, ...gone.map(file => `${file} does not run with containers`)])
})
