/** Addresses of servers as people give them, right and wrong. */
import assert from 'node:assert/strict'
import { createServer as createHttp } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createPlain, type Server } from 'node:net'
import { type TestContext, test } from 'node:test'
import { ask } from '../../src/cli/client/connection.ts'
import { serverAddress } from '../../src/cli/client/server-address.ts'
import { makeCertificate } from '../support/certificates.ts'
import { freePort } from '../support/free-ports.ts'

function mistake(text: string): string {
  try {
    return `taken as ${serverAddress(text, '--url')}`
  } catch (error) {
    return (error as Error).message
  }
}

test('an address that is not of a server is refused with the likely one', () => {
  const begins = '--url must begin with http:// or https://, '
  const names = '--url names the server, and commands add the path: give '
  const meant = {
    'http://box:8080/': 'taken as http://box:8080',
    'https://example.com/runyard': 'taken as https://example.com/runyard',
    'box:8080': `${begins}as http://box:8080`,
    '127.0.0.1:8080/v2': `${begins}as http://127.0.0.1:8080`,
    '8080': `${begins}as http://127.0.0.1:8080`,
    '': `${begins}as http://127.0.0.1:8080`,
    'ftp://box': `${begins}not with ftp://`,
    'http://': "--url must be like http://127.0.0.1:8080, not 'http://'",
    'http://box:99999': "--url must be like http://127.0.0.1:8080, not 'http://box:99999'",
    'http://box:8080/v2': `${names}http://box:8080`,
    'http://box:8080/v2/abc/run': `${names}http://box:8080`,
    'https://example.com/runyard/graphql': `${names}https://example.com/runyard`,
    'http://me:hidden@box': '--url must have no user and no password; give --api-key, and http://box as the address',
    'http://box/?key=1': '--url must have no query; give http://box',
  }
  for (const [text, said] of Object.entries(meant)) assert.equal(mistake(text), said, text)
})

async function listening(t: TestContext, server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

const saidAt = (url: string) =>
  ask({ url, apiKey: 'key' }, '/v2/serverless').then(
    () => assert.fail('it was answered'),
    (error: Error) => error.message,
  )

test('a program that is not a Runyard server, or speaks another protocol, is reported', async t => {
  const answered = (status: number, fields: Record<string, string>) =>
    listening(
      t,
      createHttp((_request, response) => response.writeHead(status, { connection: 'close', ...fields }).end()),
    )
  const [page, missing, proxy, moved, silent, secure] = await Promise.all([
    answered(200, { 'content-type': 'text/html' }),
    answered(404, { server: 'SimpleHTTP/0.6' }),
    answered(502, { server: 'nginx' }),
    answered(301, { location: 'https://box.example/v2/serverless' }),
    listening(
      t,
      createPlain(socket => socket.once('data', () => socket.end('SSH-2.0'))),
    ),
    listening(t, createHttps(makeCertificate({ names: ['box'] }))),
  ])
  const at = (port: number) => `http://127.0.0.1:${port}`
  assert.equal(
    await saidAt(at(page)),
    `the program at ${at(page)} is not a Runyard server (status 200); give another --url`,
  )
  assert.match(await saidAt(at(missing)), /is not a Runyard server \(status 404, server SimpleHTTP\/0\.6\)/)
  assert.equal(
    await saidAt(at(proxy)),
    `a proxy at ${at(proxy)} answered in place of Runyard (status 502, server nginx); check the server behind it`,
  )
  assert.equal(
    await saidAt(at(moved)),
    `${at(moved)} redirects to https://box.example/v2/serverless; give --url https://box.example`,
  )
  for (const port of [silent, secure])
    assert.match(
      await saidAt(at(port)),
      new RegExp(`does not speak HTTP .*; give https://127.0.0.1:${port} if it speaks TLS`),
    )
  const plain = `https://127.0.0.1:${missing}`
  assert.equal(await saidAt(plain), `the server at ${plain} does not speak TLS; give ${at(missing)}`)
  const nobody = at(await freePort())
  assert.equal(await saidAt(nobody), `nothing listens at ${nobody} (ECONNREFUSED)`)
  const unknown = 'http://nothing.invalid:8080'
  assert.match(await saidAt(unknown), /^the host nothing\.invalid of http:\/\/nothing\.invalid:8080 has no address \(/)
})
