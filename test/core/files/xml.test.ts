import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childText, readXml, xmlDocument } from '../../../src/core/files/xml.ts'

test('a document is written with its signs escaped', () => {
  const text = xmlDocument(['A', [['B', '<a & "b">\r\0'], null, ['C', 1], ['D', []]]])
  assert.equal(
    text,
    '<?xml version="1.0" encoding="UTF-8"?>\n<A xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><B>&lt;a &amp; &quot;b&quot;&gt;&#13;\ufffd</B><C>1</C><D></D></A>',
  )
  assert.ok(!xmlDocument(['Error', 'a'], false).includes('xmlns'))
})

test('a body is read with its entities, and without its namespaces', () => {
  const body =
    '<?xml version="1.0"?>\n<s:Delete xmlns:s="http://x/"><s:Quiet/> <s:Object><Key>a&amp;&#60;&#x1F600;</Key></s:Object></s:Delete>\n'
  const root = readXml(body)
  assert.equal(root.name, 'Delete')
  assert.equal(childText(root, 'Quiet'), '')
  assert.equal(childText(root.children[1]!, 'Key'), 'a&<😀')
  assert.equal(childText(root, 'None'), null)
})

test('a body of another form is refused, one with entities of its own among them', () => {
  const bomb = '<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>'
  const bad = [
    '',
    'a',
    '<a>',
    '</a>',
    '<a></b>',
    '<a><b></a></b>',
    '<a/><b/>',
    '<a>&b;</a>',
    '<a>&</a>',
    '<a>&#0;</a>',
    bomb,
  ]
  const more = ['<a><!-- b --></a>', '<a><![CDATA[b]]></a>', '<a><?b?></a>', '<a', '<>', '<a>&#xd800;</a>', 'a<b/>']
  for (const text of [...bad, ...more, '<a>'.repeat(20), `<a>${'<b/>'.repeat(60_001)}</a>`]) {
    assert.throws(() => readXml(text), { name: 'FileError', code: 'MalformedXML' }, text.slice(0, 40))
  }
})
