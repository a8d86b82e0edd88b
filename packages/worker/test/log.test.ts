import assert from 'node:assert/strict'
import { existsSync, openSync } from 'node:fs'
import { describe, it } from 'node:test'
import { atOnce, bench, final, until } from './support/bench.ts'

/** Messages in the output of a worker with these variables, for one job that logs at each level. */
async function shown(t: Parameters<typeof bench>[0], env: Record<string, string>): Promise<string[]> {
  const { stub, child } = await bench(t, { jobs: [{ do: 'levels' }], env: { RUNPOD_ENDPOINT_ID: 'ep1', ...env } })
  await final(stub, 'j1')
  await child.end('SIGTERM')
  return child.logLines().flatMap(({ requestId, message }) => (requestId === 'j1' ? [message] : []))
}

const all = ['at debug', 'at info', 'at warn', 'at error', 'console at debug', 'console at warn']

describe('log levels', atOnce, () => {
  it('shows all but traces without a level, as RunPod’s SDK for Python', async t => {
    assert.deepEqual(await shown(t, {}), all)
  })

  it('shows what is at RUNPOD_LOG_LEVEL or above, else at RUNPOD_DEBUG_LEVEL, from the console as well', async t => {
    const warnings = ['at warn', 'at error', 'console at warn']
    assert.deepEqual(await shown(t, { RUNPOD_LOG_LEVEL: 'warn', RUNPOD_DEBUG_LEVEL: 'DEBUG' }), warnings)
    assert.deepEqual(await shown(t, { RUNPOD_DEBUG_LEVEL: 'ERROR' }), ['at error'])
    assert.deepEqual(await shown(t, { RUNPOD_LOG_LEVEL: '1' }), ['at trace', ...all])
  })

  it('shows nothing at NOTSET', async t => {
    assert.deepEqual(await shown(t, { RUNPOD_LOG_LEVEL: 'NOTSET' }), [])
  })

  it('tells a level that does not exist, and works on without it', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'levels' }], env: { RUNPOD_LOG_LEVEL: 'LOUD' } })
    await final(stub, 'j1')
    await until('the line', () =>
      /WARN {2}\| RUNPOD_LOG_LEVEL is "LOUD", not one of NOTSET, TRACE, DEBUG/.test(child.stdout),
    )
    await until('the debug line', () => child.stdout.includes('DEBUG | j1 | at debug'))
  })

  it('leaves out the middle of a message that is too long', async t => {
    const { stub, child } = await bench(t, { jobs: [{ do: 'long' }], env: { RUNPOD_ENDPOINT_ID: 'ep1' } })
    await final(stub, 'j1')
    await child.end('SIGTERM')
    const [line] = child.logLines().filter(({ requestId }) => requestId === 'j1')
    assert.equal(line?.message, `${'x'.repeat(2048)}\n...TRUNCATED 904 CHARACTERS...\n${'x'.repeat(2048)}`)
  })
})

it('goes on when its output cannot be written', { skip: existsSync('/dev/full') ? false : 'no /dev/full' }, async t => {
  const levels = { do: 'levels' }
  const env = { RUNPOD_ENDPOINT_ID: 'ep1' }
  const { stub, child } = await bench(t, { jobs: [levels, levels, levels], env, stdout: openSync('/dev/full', 'w') })
  for (const id of ['j1', 'j2', 'j3']) await final(stub, id)
  assert.equal((await child.end('SIGTERM')).code, 0, child.stderr)
})
