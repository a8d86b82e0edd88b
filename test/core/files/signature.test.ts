/** AWS Signature Version 4, with the examples of its documentation. */
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { FileError } from '../../../src/core/files/file-error.ts'
import {
  canonicalRequest,
  chunkTextToSign,
  readSignature,
  readTarget,
  type Signature,
  type SignedHead,
  signatureTimeProblem,
  textToSign,
} from '../../../src/core/files/signature.ts'

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY'
const CREDENTIAL = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request'
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

function makeHead(method: string, target: string, headers: Record<string, string>): SignedHead {
  return { method, target, header: name => headers[name] ?? null, headerNames: Object.keys(headers) }
}

function sha256(data: string): string {
  return createHash('sha256').update(data).digest('hex')
}

function sign({ scope }: Signature, text: string): string {
  const parts = [...scope, 'aws4_request']
  const start: string | Buffer = `AWS4${SECRET}`
  const key = parts.reduce<string | Buffer>((key, part) => createHmac('sha256', key).update(part).digest(), start)
  return createHmac('sha256', key).update(text).digest('hex')
}

function signatureFor(head: SignedHead): { given: Signature; made: string } {
  const target = readTarget(head.target)
  const given = readSignature(head, target)
  return { given, made: sign(given, textToSign(given, sha256(canonicalRequest(head, target, given)))) }
}

function authorization(signedHeaders: string, signature: string): string {
  return `AWS4-HMAC-SHA256 Credential=${CREDENTIAL},SignedHeaders=${signedHeaders},Signature=${signature}`
}

describe('signatures of the documentation', () => {
  test('of a GET with a range', () => {
    const signature = 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'
    const headers = {
      host: 'examplebucket.s3.amazonaws.com',
      range: 'bytes=0-9',
      'x-amz-content-sha256': EMPTY,
      'x-amz-date': '20130524T000000Z',
      authorization: authorization('host;range;x-amz-content-sha256;x-amz-date', signature),
    }
    const { given, made } = signatureFor(makeHead('GET', '/test.txt', headers))
    assert.equal(made, signature)
    assert.deepEqual([given.accessKeyId, given.expiresMs, given.payload], ['AKIAIOSFODNN7EXAMPLE', null, EMPTY])
  })

  test('of a PUT whose key has a sign that is encoded', () => {
    const signature = '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd'
    const headers = {
      date: 'Fri, 24 May 2013 00:00:00 GMT',
      host: 'examplebucket.s3.amazonaws.com',
      'x-amz-content-sha256': sha256('Welcome to Amazon S3.'),
      'x-amz-date': '20130524T000000Z',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      authorization: authorization('date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class', signature),
    }
    for (const target of ['/test$file.text', '/test%24file.text']) {
      assert.equal(signatureFor(makeHead('PUT', target, headers)).made, signature)
    }
  })

  test('of lists, whose queries are sorted', () => {
    const signature = '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'
    const headers = {
      host: 'examplebucket.s3.amazonaws.com',
      'x-amz-content-sha256': EMPTY,
      'x-amz-date': '20130524T000000Z',
      authorization: authorization('host;x-amz-content-sha256;x-amz-date', signature),
    }
    assert.equal(signatureFor(makeHead('GET', '/?prefix=J&max-keys=2', headers)).made, signature)
  })

  test('of a presigned URL', () => {
    const signature = 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404'
    const words = [
      'X-Amz-Algorithm=AWS4-HMAC-SHA256',
      `X-Amz-Credential=${encodeURIComponent(CREDENTIAL)}`,
      'X-Amz-Date=20130524T000000Z',
      'X-Amz-Expires=86400',
      'X-Amz-SignedHeaders=host',
      `X-Amz-Signature=${signature}`,
    ]
    const head = makeHead('GET', `/test.txt?${words.join('&')}`, { host: 'examplebucket.s3.amazonaws.com' })
    const { given, made } = signatureFor(head)
    assert.equal(made, signature)
    const start = Date.UTC(2013, 4, 24)
    assert.equal(signatureTimeProblem(given, start + 86_400_000), null)
    assert.match(signatureTimeProblem(given, start + 86_400_001)!.message, /has expired/)
    assert.match(signatureTimeProblem(given, start - 16 * 60_000)!.message, /not valid yet/)
  })

  test('of the chunks of a body', () => {
    const seed = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'
    const headers = {
      'content-encoding': 'aws-chunked',
      'content-length': '66824',
      host: 's3.amazonaws.com',
      'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
      'x-amz-date': '20130524T000000Z',
      'x-amz-decoded-content-length': '66560',
      'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      authorization: authorization(
        'content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class',
        seed,
      ),
    }
    const { given, made } = signatureFor(makeHead('PUT', '/examplebucket/chunkObject.txt', headers))
    assert.equal(made, seed)
    const expected = [
      ['a'.repeat(65_536), 'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648'],
      ['a'.repeat(1_024), '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497'],
      ['', 'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9'],
    ] as const
    let previous = made
    for (const [data, signature] of expected) {
      previous = sign(given, chunkTextToSign('PAYLOAD', given, previous, [EMPTY, sha256(data)]))
      assert.equal(previous, signature)
    }
  })
})

describe('a request is refused', () => {
  const code = (head: SignedHead) => {
    try {
      return signatureFor(head).given.accessKeyId
    } catch (error) {
      assert.ok(error instanceof FileError)
      return error.code
    }
  }
  const headers = {
    host: 'h',
    'x-amz-date': '20130524T000000Z',
    'x-amz-content-sha256': EMPTY,
    authorization: authorization('host;x-amz-content-sha256;x-amz-date', 'a'.repeat(64)),
  }

  test('without a signature, or with one of the former version', () => {
    assert.equal(code(makeHead('GET', '/', { host: 'h' })), 'AccessDenied')
    assert.equal(code(makeHead('GET', '/?AWSAccessKeyId=a&Signature=b&Expires=1', { host: 'h' })), 'InvalidRequest')
    assert.equal(code(makeHead('GET', '/', { host: 'h', authorization: 'AWS a:b' })), 'InvalidRequest')
    assert.equal(
      code(makeHead('GET', '/', { host: 'h', authorization: 'Bearer rpa_a' })),
      'AuthorizationHeaderMalformed',
    )
  })

  test('where the signature leaves out the host or a header that changes the request', () => {
    assert.equal(code(makeHead('GET', '/', headers)), 'AKIAIOSFODNN7EXAMPLE')
    assert.equal(code(makeHead('GET', '/', { ...headers, 'x-amz-copy-source': '/other/key' })), 'AccessDenied')
    assert.equal(code(makeHead('GET', '/', { ...headers, 'content-md5': 'a' })), 'AccessDenied')
    const noHost = authorization('x-amz-content-sha256;x-amz-date', 'a'.repeat(64))
    assert.equal(code(makeHead('GET', '/', { ...headers, authorization: noHost })), 'AccessDenied')
  })

  test('with a signature of another form', () => {
    const bad = [
      authorization('host;x-amz-date;x-amz-content-sha256', 'a'.repeat(64)),
      authorization('host;host', 'a'.repeat(64)),
      authorization('host', 'A'.repeat(64)),
      authorization('host', 'a'.repeat(63)),
      authorization('host', 'a'.repeat(64)).replace('/s3/', '/ec2/'),
      authorization('host', 'a'.repeat(64)).replace('20130524', '20130525'),
      'AWS4-HMAC-SHA256 Credential',
    ]
    for (const text of bad) {
      assert.equal(
        code(makeHead('GET', '/', { ...headers, authorization: text })),
        'AuthorizationHeaderMalformed',
        text,
      )
    }
    for (const expires of ['0', '604801', 'x', '']) {
      const target = `/?X-Amz-Signature=a&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=${expires}`
      assert.equal(code(makeHead('GET', target, { host: 'h' })), 'AuthorizationQueryParametersError')
    }
  })

  test('more than 15 minutes from the time of the server', () => {
    const given = signatureFor(makeHead('GET', '/', headers)).given
    const atMs = Date.UTC(2013, 4, 24)
    for (const ms of [-15 * 60_000, 0, 15 * 60_000]) assert.equal(signatureTimeProblem(given, atMs + ms), null)
    for (const ms of [-900_001, 900_001]) {
      assert.equal(signatureTimeProblem(given, atMs + ms)?.code, 'RequestTimeTooSkewed')
    }
  })

  test('with an address that is not UTF-8', () => {
    for (const target of ['/%ff', '/%', '/a?b=%c3'])
      assert.throws(() => readTarget(target), { code: 'InvalidArgument' })
  })
})
