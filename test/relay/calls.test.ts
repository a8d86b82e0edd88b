import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callKind, passedHeaders, resultUrl, splitResults } from '../../src/relay/calls.ts'

test('the seven calls are known, also as old set-ups write them', () => {
  const kinds = [
    ['GET', '/v2/ep/job-take/w?gpu=CPU&job_in_progress=0', 'take'],
    ['GET', '/v2/ep/job-take/$RUNPOD_POD_ID&job_in_progress=0', 'take'],
    ['GET', '/v2/ep/job-take-batch/w?gpu=CPU&batch_size=3', 'take'],
    ['GET', '/v2/ep/job-stop/w?gpu=CPU', 'poll'],
    ['POST', '/v2/ep/job-done/w/job?isStream=false', 'result'],
    ['POST', '/v2/ep/job-done-batch/w?gpu=CPU', 'results'],
    ['POST', '/v2/ep/job-stream/w/job?isStream=false', 'chunk'],
    ['GET', '/v2/ep/ping/w', 'ping'],
    ['POST', '//v2//ep/job-done//job?isStream=false', 'result'],
  ] as const
  for (const [method, url, kind] of kinds) assert.equal(callKind(method, url), kind, url)
})

test('nothing else is passed on', () => {
  const others = [
    ['GET', '/'],
    ['GET', '/v2/ep/health'],
    ['POST', '/v2/ep/run'],
    ['POST', '/v2/ep/runsync'],
    ['POST', '/v2/ep/job-take/w'],
    ['GET', '/v2/ep/job-done/w/job'],
    ['DELETE', '/v2/ep/ping/w'],
    ['GET', '/v2/ep/status/job-take/w'],
    ['GET', '/graphql?/v2/ep/ping/w'],
    ['GET', '/v2/ep?/ping/w'],
    ['GET', '/v2/ep/constructor/w'],
    ['GET', '/v2/ep/../../job-take/w'],
    ['GET', '/v2/../job-take/w'],
    ['POST', '/v2/ep/job-done/../../../graphql'],
    ['POST', '/v2/ep/job-done/%2e%2e/.%2E/..\\graphql'],
    ['GET', 'http://a/v2/ep/ping/w'],
  ] as const
  for (const [method, url] of others) assert.equal(callKind(method, url), null, url)
})

test('the result of one job has an address of its own', () => {
  assert.equal(resultUrl('/v2/ep/job-done-batch/w?gpu=CPU', 'job-u1'), '/v2/ep/job-done/w/job-u1?gpu=CPU')
  assert.equal(resultUrl('//v2/ep//job-done-batch/w', 'job-u1'), '/v2/ep/job-done/w/job-u1')
  assert.equal(resultUrl('/v2/ep/job-done-batch/?gpu=CPU', 'job-u1'), '/v2/ep/job-done/job-u1?gpu=CPU')
  // Otherwise the server finds no job or another one, and answers 200 without the result.
  assert.equal(resultUrl('/v2/ep/job-done-batch/w&gpu=CPU', 'job-u1'), '/v2/ep/job-done/w/job-u1')
  assert.equal(resultUrl('/v2/ep/job-done-batch/w/other-u1', 'job-u1'), '/v2/ep/job-done/w/job-u1')
})

test('several results are split as the server reads them, and not at all where it would refuse them', () => {
  const id = '00000000-0000-4000-8000-000000000000-u1'
  const split = (text: string) => splitResults(Buffer.from(text))
  assert.deepEqual(split(`${id}\n{"output":"ü"}`), [{ jobId: id, text: '{"output":"ü"}' }])
  assert.equal(split(`${id}`), null)
  assert.equal(splitResults(Buffer.concat([Buffer.from(`${id}\n"`), Buffer.from([0xff, 0x22])])), null)
  // The relay keeps no more of such a body, so its last result would be one that nobody sent.
  assert.equal(split(`${id}\n"${'x'.repeat(131_071)}`), null)
})

test('headers of one connection and those of the relay itself are left out', () => {
  const raw = ['Host', 'a', 'Authorization', 't', 'connection', 'close', 'X-Runyard-Again', '1', 'User-Agent', 'u']
  assert.deepEqual(passedHeaders(raw), ['Authorization', 't', 'User-Agent', 'u'])
})
