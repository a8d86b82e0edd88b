/** Parsers of texts and facts about containers, without an engine. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isFloating, parseReference, sameRepository } from '../../../src/core/endpoints/image-reference.ts'
import { startFailureFromError, startRemedy } from '../../../src/core/workers/start-failure.ts'
import { observedExitText } from '../../../src/core/workers/worker-exit.ts'
import { remedyForExit } from '../../../src/core/workers/worker-failure.ts'
import { engineAddresses } from '../../../src/drivers/docker/engine/engine-address.ts'
import { EngineError, startRefusal } from '../../../src/drivers/docker/engine/engine-error.ts'
import { type ContainerEnd, containerExit } from '../../../src/drivers/docker/exit-cause.ts'
import { PulledImages, readFreeShare } from '../../../src/drivers/docker/images/pulled-images.ts'
import { FrameReader } from '../../../src/drivers/docker/log-frames.ts'
import { systemClock } from '../../../src/system/clock.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

test('references of images are read in their parts', () => {
  const parts = (text: string) => Object.values(parseReference(text) ?? {})
  assert.deepEqual(parts('python'), ['docker.io', 'python', null, null])
  assert.deepEqual(parts('me/worker:1.0'), ['docker.io', 'me/worker', '1.0', null])
  assert.deepEqual(parts('localhost:5000/a/b'), ['localhost:5000', 'localhost:5000/a/b', null, null])
  assert.deepEqual(parts(`ghcr.io/me/w:v1@${DIGEST}`), ['ghcr.io', 'ghcr.io/me/w', 'v1', DIGEST])
  for (const text of ['', 'Python', 'Me/worker', 'a b', 'a:', 'a@sha256:12', '-a', 'a//b', 'a:b:c', 'a'.repeat(600)]) {
    assert.equal(parseReference(text), null, text)
  }
  const floating = (text: string) => isFloating(parseReference(text)!)
  assert.deepEqual(['a', 'a:latest', 'a:1', `a@${DIGEST}`].map(floating), [true, true, false, false])
  assert.ok(sameRepository('python', 'docker.io/library/python'))
  assert.ok(!sameRepository('me/python', 'python'))
  assert.ok(!sameRepository('ghcr.io/me/w', 'me/w'))
})

test('an engine is looked for where it was named, else where Docker and Podman put it', () => {
  const places = (setting: string, env = {}) => engineAddresses(setting, env).map(({ text }) => text)
  assert.deepEqual(places('unix:///a.sock', { DOCKER_HOST: 'unix:///b.sock' }), ['unix:///a.sock'])
  assert.deepEqual(places('auto', { DOCKER_HOST: 'tcp://h:1' }), ['tcp://h:1'])
  assert.deepEqual(places('auto', { DOCKER_HOST: 'ssh://me@h' }), [])
  const found = places('auto', { HOME: '/h', XDG_RUNTIME_DIR: '/run/user/7' })
  assert.equal(found[0], 'unix:///var/run/docker.sock')
  for (const place of ['/h/.docker/run/docker.sock', '/run/user/7/podman/podman.sock', '/run/podman/podman.sock']) {
    assert.ok(found.includes(`unix://${place}`), place)
  }
  const [address] = engineAddresses('tcp://h', { DOCKER_TLS_VERIFY: '1' })
  assert.deepEqual([address?.connection, address?.tls], [{ host: 'h', port: 2376 }, {}])
})

test('the use of a disk is known for folders of this machine', () => {
  const share = readFreeShare(tmpdir())
  assert.ok(share !== null && share >= 0 && share <= 1, String(share))
  assert.deepEqual(['', '/nowhere/at/all'].map(readFreeShare), [null, null])
})

const killed: ContainerEnd = {
  code: 137,
  outOfMemory: true,
  withEngine: false,
  asked: false,
  memoryMb: 5,
  tail: '',
  architecture: 'x86_64',
}

test('the end of a container is explained in a message', () => {
  const end = (changes: Partial<ContainerEnd>) => {
    const plain = { code: 1, outOfMemory: false, withEngine: false, asked: false, memoryMb: null, tail: '' }
    const exit = containerExit({ ...plain, architecture: 'x86_64', ...changes })
    return [exit.code, exit.signal, observedExitText(exit)]
  }
  assert.deepEqual(end({ code: 0 }), [0, null, 'exited with code 0'])
  assert.deepEqual(end({ code: 139 }), [null, 'SIGSEGV', 'was killed by SIGSEGV'])
  assert.deepEqual(end({ code: 200 }), [200, null, 'exited with code 200'])
  assert.deepEqual(end({ code: null }), [null, null, 'ended'])
  assert.deepEqual(
    end({ outOfMemory: true, memoryMb: 5 })[2],
    'exited with code 1 after it had used more than its 5 MB of memory',
  )
  assert.deepEqual(end({ outOfMemory: true, code: 0 })[2], 'exited with code 0')
  for (const memoryMb of [5, null]) {
    const exit = containerExit({ ...killed, memoryMb })
    assert.match(remedyForExit({ ...exit, lastLines: [] }, null).advice, /more memory, or load less/)
  }
  const engine = 'when the container engine was stopped or restarted'
  assert.deepEqual(end({ code: 143, withEngine: true })[2], `was killed by SIGTERM ${engine}`)
  assert.deepEqual(end({ code: 143, withEngine: true, asked: true })[2], 'was killed by SIGTERM')
  const tini = (reason: string) => end({ code: 127, tail: `[FATAL tini (7)] exec start failed: ${reason}\n` })[2]
  assert.match(String(tini('Exec format error')), /'start' is not a program for this machine \(x86_64\)$/)
  assert.match(String(tini('Too many levels')), /could not be started: Too many levels$/)
  assert.match(
    String(end({ code: 127, tail: 'ERROR (catatonit:6): failed to exec pid1: No such file or directory\n' })[2]),
    /because its program does not exist/,
  )
})

test('what an engine says about a start becomes a reason', () => {
  const reason = (message: string, status: number | null = 500, away = false) =>
    startRefusal(new EngineError(message, status, away), 4).message
  assert.match(reason('No command specified', 400), /names no command, and args gives none/)
  assert.match(reason('write /x: no space left on device'), /no space left on the disk of the container engine/)
  assert.equal(reason('Minimum memory limit allowed is 6MB', 400), '4 MB of memory are too few for a container')
  assert.match(reason('node is shutting down', 503), /overloaded or shuts down: node is/)
  assert.match(reason('strange'), /^the container engine refuses it: strange$/)
  assert.match(reason('nobody listens there', null, true), /cannot be reached: nobody/)
  assert.match(reason('no answer within 10 s', null), /does not answer: no answer within 10 s/)
  for (const isAway of [true, false]) {
    const failure = startFailureFromError(startRefusal(new EngineError('whatever it says', null, isAway)))
    assert.deepEqual([failure.kind, startRemedy(failure).cause], ['engine_away', 'engine_away'])
  }
})

test('frames of output are put together from any pieces', () => {
  const frame = (text: string, stream = 1) => {
    const head = Buffer.alloc(8)
    head[0] = stream
    head.writeUInt32BE(Buffer.byteLength(text), 4)
    return Buffer.concat([head, Buffer.from(text)])
  }
  const whole = Buffer.concat([frame('2026-01-01T00:00:00.5Z one\n'), frame('2026-01-01T01:00:01+01:00 zwei ö\n', 2)])
  for (const size of [1, 3, 9, 1000]) {
    const reader = new FrameReader()
    const entries: string[] = []
    for (let at = 0; at < whole.length; at += size) {
      for (const entry of reader.push(whole.subarray(at, at + size))) entries.push(`${entry.at} ${entry.text}`)
    }
    assert.deepEqual(entries, ['001767225600.500000000 one\n', '001767225601.000000000 zwei ö\n'])
  }
  assert.throws(() => new FrameReader().push(Buffer.from('plain text, no frames at all')), /unknown form/)
})

test('an image is kept for a day, for an hour while the disk is nearly full, and as long as a release runs it', context => {
  const folder = mkdtempSync(join(tmpdir(), 'runyard-images-'))
  context.after(() => rmSync(folder, { recursive: true }))
  let nowMs = 1_000
  let free: number | null = 0.5
  const clock = { ...systemClock, now: () => nowMs }
  const options = { file: join(folder, 'images.json'), clock, freeShare: () => free }
  const images = new PulledImages(options)
  images.add('sha256:1', ['a:1', `a@${DIGEST}`, 'sha256:1'])
  nowMs += 3_600_000
  images.used('a:1')
  const unused = (keep: string[] = []) =>
    new PulledImages(options).unused(new Set(keep)).map(({ references }) => references)
  nowMs += 3_600_000 - 1
  free = 0.09
  assert.deepEqual(unused(), [], 'somebody has used it within the hour')
  nowMs += 1
  assert.equal(unused().length, 1)
  assert.deepEqual(unused(['a:1']), [])
  for (free of [0.1, 1, null]) assert.deepEqual(unused(), [], `${free} of the disk is free`)
  nowMs += 23 * 3_600_000 - 1
  assert.deepEqual(unused(), [])
  nowMs += 1
  assert.deepEqual(unused(), [['a:1', `a@${DIGEST}`]])
  for (const kept of ['a:1', `a@${DIGEST}`, 'sha256:1']) assert.deepEqual(unused([kept]), [])
  assert.deepEqual(
    ['a', 'docker.io/library/a:2', `a@${DIGEST}`, 'b', 'me/a'].map(name => images.has('sha256:1', name)),
    [true, true, true, false, false],
  )
  images.forget('sha256:1')
  assert.equal(images.has('sha256:1', 'a'), false)
  assert.deepEqual(unused(), [])
})
