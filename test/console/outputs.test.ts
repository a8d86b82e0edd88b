import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parseExact } from '../../console/pages/endpoint/requests/exact-json.ts'
import { decodeFile, svgAddress } from '../../console/parts/output/decode.ts'
import { fileType, findFile, findParts, isLink } from '../../console/parts/output/detect.ts'
import { readInline, readMarkdown } from '../../console/parts/output/markdown.ts'
import { cellText, shownText, wholeText } from '../../console/parts/output/shown-json.ts'

/** A file with this beginning, as base64. */
function base64(head: string, bytes = 600): string {
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(bytes - head.length, 7)]).toString('base64')
}

const PNG = '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'

describe('a file in an output', () => {
  for (const [type, head] of [
    ['image/png', PNG],
    ['image/jpeg', '\xff\xd8\xff\xe0\0\x10JFIF'],
    ['image/gif', 'GIF89a\x01\0'],
    ['image/webp', 'RIFF\x24\0\0\0WEBPVP8 '],
    ['image/avif', '\0\0\0\x20ftypavif'],
    ['audio/wav', 'RIFF\x24\0\0\0WAVEfmt '],
    ['audio/mpeg', 'ID3\x04\0\0'],
    ['audio/mpeg', '\xff\xfb\x90\x64'],
    ['audio/ogg', 'OggS\0\x02'],
    ['audio/flac', 'fLaC\0\0\0\x22'],
    ['audio/mp4', '\0\0\0\x20ftypM4A '],
    ['video/mp4', '\0\0\0\x18ftypmp42'],
    ['video/webm', '\x1aE\xdf\xa3\x01'],
    ['application/pdf', '%PDF-1.7\n'],
  ] as const)
    test(`is ${type} by its first bytes, with and without a prefix, which may lie`, () => {
      const text = base64(head)
      for (const written of [text, `data:text/html;base64,${text}`, text.replaceAll(/.{76}/g, '$&\n')]) {
        const found = findFile(written)
        assert.equal(found?.type, type)
        assert.equal(found.kind, type === 'application/pdf' ? 'file' : type.split('/')[0])
      }
    })

  test('is nothing that a text, an id or a number may look like', () => {
    const texts = [
      'a sentence that has no sign of a file, and is long enough to be one of them, word by word',
      'iVBORw0KGgo',
      `${base64(PNG)} and more!`,
      '0123456789abcdef'.repeat(40),
      '//uQ',
      'data:,',
      'data: the values of the table are in the appendix, see there',
    ]
    for (const text of texts) assert.equal(findFile(text)?.kind ?? 'none', text === 'data:,' ? 'file' : 'none', text)
  })

  test('that a browser could run is saved only, and an SVG is an image without an origin', async () => {
    const page = findFile(`data:text/html;base64,${btoa('<script>1</script>')}`)
    assert.deepEqual([page?.kind, page?.type], ['file', 'application/octet-stream'])
    const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    for (const text of [
      svg,
      `data:image/svg+xml;base64,${btoa(svg)}`,
      `data:image/svg+xml,${encodeURIComponent(svg)}`,
    ]) {
      const found = findFile(text)
      assert.equal(found?.type, 'image/svg+xml')
      assert.match(svgAddress(found), /^data:image\/svg\+xml[;,]/)
      assert.equal(await (await decodeFile(found)).text(), svg)
    }
  })

  test('is decoded wholly, with line ends and the alphabet of addresses, and not if it breaks off', async () => {
    const bytes = Buffer.concat([
      Buffer.from(PNG, 'latin1'),
      Buffer.from(Array.from({ length: 900_001 }, (_, at) => at)),
    ])
    const texts = [bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n'), bytes.toString('base64url')]
    for (const text of texts) {
      const blob = await decodeFile(findFile(text)!)
      assert.equal(blob.type, 'image/png')
      assert.deepEqual(Buffer.from(await blob.arrayBuffer()), bytes)
    }
    const broken = `${base64(PNG, 6_000).slice(0, 4_000)}!${base64(PNG)}`
    await assert.rejects(decodeFile(findFile(broken)!), /not base64 to its end/)
  })

  test('of 20 MB is recognized from its beginning alone', () => {
    const text = base64(PNG, 15_000_000)
    let looked = 0
    const counted = new Proxy(Object(text), {
      get(of, name) {
        const member = of[name]
        if (typeof member !== 'function') return member
        return (...given: unknown[]) => {
          const result = member.apply(text, given)
          if (typeof result === 'string') looked += result.length
          return result
        }
      },
    })
    assert.equal(findFile(counted)?.type, 'image/png')
    assert.ok(looked < 2_000, `${looked} characters were copied`)
  })
})

test('the sizes of heads decide: a short text is no MP3', () => {
  assert.equal(fileType(Buffer.from([0xff, 0xfb, 0x90, 0x64]), 80), null)
})

describe('the parts of an output', () => {
  test('are found in any place, also in lists, each with its place', () => {
    const output = {
      images: [base64(PNG), { b64_json: base64('\xff\xd8\xff\xe0') }],
      'the file': 'https://s3.example/bucket/a.mp4?X-Amz-Signature=1',
      seed: 41,
      choices: [{ message: { content: '# Title\n\n- one\n- two' } }],
    }
    const { parts, isCut } = findParts(output)
    assert.equal(isCut, false)
    assert.deepEqual(
      parts.map(({ is, path }) => [is, path]),
      [
        ['file', 'images[0]'],
        ['file', 'images[1].b64_json'],
        ['link', '["the file"]'],
        ['text', 'choices[0].message.content'],
      ],
    )
    assert.equal(findParts(base64(PNG)).parts[0]?.path, '')
  })

  test('are links of http and https alone, without a name in them', () => {
    for (const link of ['https://a.b/c.png', 'http://127.0.0.1:8080/s3/v/x?y=1']) assert.equal(isLink(link), true)
    for (const no of ['javascript:alert(1)', 'ftp://a.b', 'https://user:pass@a.b', 'see https://a.b', 'https://'])
      assert.equal(isLink(no), false, no)
  })

  test('are tables where a list has flat objects', () => {
    const rows = [
      { name: 'a', score: 1.5 },
      { name: 'b', size: null },
    ]
    const [part] = findParts({ rows }).parts
    assert.deepEqual(part, { is: 'table', path: 'rows', table: { columns: ['name', 'score', 'size'], rows } })
    for (const list of [[{ a: 1 }], [{ a: 1 }, { a: [1] }], [{ a: 1 }, 2], [{}, {}]])
      assert.deepEqual(findParts(list).parts, [])
    const large = findParts(parseExact('[{"id":12345678901234567890},{"id":1}]')).parts[0]
    assert.ok(large?.is === 'table')
    assert.equal(cellText(large.table.rows[0]?.id), '12345678901234567890')
  })

  test('are looked for with a bound, and an output of any shape ends', () => {
    let deep: unknown = 1
    for (let at = 0; at < 5_000; at += 1) deep = [deep]
    assert.equal(findParts(deep).isCut, true)
    const { parts, isCut } = findParts(Array.from({ length: 500 }, () => base64(PNG)))
    assert.deepEqual([parts.length, isCut], [100, true])
    assert.equal(findParts(Array.from({ length: 1_000_000 }, () => 1)).isCut, true)
  })
})

test('the shown JSON names files instead of their bytes, and the copy has them', () => {
  const value = { image: base64(PNG, 3_000), note: 'x'.repeat(900) }
  const shown = JSON.parse(shownText(value))
  assert.equal(shown.note, value.note)
  assert.match(shown.image, /^iVBORw0KGgo.*… \(image\/png, 3\.0 kB\)$/)
  assert.deepEqual(JSON.parse(wholeText(value)), value)
  assert.equal(wholeText('plain'), 'plain')
})

describe('Markdown of models', () => {
  test('is a tree of headings, lists, code, tables, quotes and text', () => {
    const blocks = readMarkdown(
      '# One\ntext\nmore\n\n1. a\n   - b\n2. c\n\n```py\nx = "**"\n```\n> q\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n---\n',
    )
    assert.deepEqual(
      blocks.map(({ is }) => is),
      ['heading', 'text', 'list', 'code', 'quote', 'table', 'rule'],
    )
    assert.deepEqual(blocks[2], {
      is: 'list',
      start: 1,
      items: [
        [
          { is: 'text', of: ['a'] },
          { is: 'list', start: null, items: [[{ is: 'text', of: ['b'] }]] },
        ],
        [{ is: 'text', of: ['c'] }],
      ],
    })
    assert.deepEqual(blocks[3], { is: 'code', language: 'py', text: 'x = "**"' })
  })

  test('has emphasis, code and links, and leaves the rest as it is', () => {
    assert.deepEqual(readInline('**a *b*** `c*` ~~d~~ max_new_tokens 2 * 3 * 4 <b>x</b>'), [
      { is: 'strong', of: ['a ', { is: 'em', of: ['b'] }] },
      ' ',
      { is: 'code', text: 'c*' },
      ' ',
      { is: 'del', of: ['d'] },
      ' max_new_tokens 2 * 3 * 4 <b>x</b>',
    ])
    assert.deepEqual(readInline('[a](javascript:x) https://a.b/c.'), [
      { is: 'link', url: 'javascript:x', of: ['a'] },
      ' ',
      { is: 'link', url: 'https://a.b/c', of: ['https://a.b/c'] },
      '.',
    ])
  })

  test('that is long and never ends what it begins is read in time that grows with its length', () => {
    for (const sign of ['*', '[', '`', '_a', '![', '> ', '- ', '|', '#', '**a', 'http://', '\n', '```\n', '[a](']) {
      const blocks = readMarkdown(sign.repeat(100_000 / sign.length))
      assert.ok(Array.isArray(blocks))
    }
  })
})
