/** An output as what it is: its images, media, files, links, tables and texts, then its JSON. */
import { useEffect, useMemo, useState } from 'preact/hooks'
import { bytes, count, plural } from '../../format.ts'
import { Button, Code, Copy } from '../basic.tsx'
import { csv, download, saveBlob } from '../csv.ts'
import { decodeFile, svgAddress } from './decode.ts'
import { type FoundFile, type FoundTable, findParts, type OutputPart } from './detect.ts'
import { Elsewhere, MarkdownView } from './markdown-view.tsx'
import { cellText, cellValue, shownText, wholeText } from './shown-json.ts'

/** Limit of characters of JSON that are shown; copy and download have all. */
const MAX_SHOWN = 200_000
/** Number of parts that are shown at first, and with each press. */
const PARTS = 12
/** Limit of shown rows of a table; its file has all. */
const MAX_ROWS = 100

/** A value of a job. @param name of its file, without an end */
export function OutputView({
  value,
  what,
  name,
}: {
  readonly value: unknown
  readonly what: string
  readonly name: string
}) {
  const { parts, isCut } = useMemo(() => findParts(value), [value])
  const [shown, setShown] = useState(PARTS)
  const isWhole = parts.length === 1 && parts[0]!.path === ''
  return (
    <div class="output">
      {parts.slice(0, shown).map((part, at) => (
        <PartView key={part.path} part={part} name={parts.length === 1 ? name : `${name}-${at + 1}`} />
      ))}
      {parts.length > shown ? (
        <Button onPress={() => setShown(shown + PARTS)}>
          Show more: {count(parts.length - shown)} {parts.length - shown === 1 ? 'is' : 'are'} left
        </Button>
      ) : null}
      {isCut && parts.length <= shown ? (
        <p class="hint">Only the beginning was looked at for images and texts.</p>
      ) : null}
      {parts.length === 0 ? (
        <Json value={value} what={what} name={name} />
      ) : (
        <details open={!isWhole}>
          <summary>{typeof value === 'string' ? 'As text' : 'JSON'}</summary>
          <Json value={value} what={what} name={name} />
        </details>
      )}
    </div>
  )
}

function Json({ value, what, name }: { readonly value: unknown; readonly what: string; readonly name: string }) {
  const text = useMemo(() => shownText(value), [value])
  const isText = typeof value === 'string'
  const save = () =>
    download(`${name}.${isText ? 'txt' : 'json'}`, wholeText(value), isText ? 'text/plain' : 'application/json')
  return (
    <>
      {text.length > MAX_SHOWN ? (
        <p class="hint">{bytes(text.length)}; only the beginning is shown. Copy and download have all.</p>
      ) : null}
      <Code text={text.slice(0, MAX_SHOWN)} what={what} whole={() => wholeText(value)} />
      <Button kind="quiet" onPress={save} aria-label={`Download whole ${what}`}>
        Download whole
      </Button>
    </>
  )
}

function PartView({ part, name }: { readonly part: OutputPart; readonly name: string }) {
  const { path } = part
  switch (part.is) {
    case 'file':
      return <FileView file={part.file} path={path} name={`${name}.${part.file.end}`} />
    case 'link':
      return (
        <p class="part-link">
          <Place path={path} /> <Elsewhere url={part.url}>{part.url}</Elsewhere>
        </p>
      )
    case 'text':
      return (
        <div class="part-text" role="group" aria-label={path === '' ? 'Text' : `Text of ${path}`}>
          <div class="part-head">
            <Place path={path} />
            <Copy text={part.text} what="text" />
          </div>
          {part.isMarkdown ? (
            <MarkdownView text={part.text.slice(0, MAX_SHOWN)} />
          ) : (
            <pre>{part.text.slice(0, MAX_SHOWN)}</pre>
          )}
          {part.text.length > MAX_SHOWN ? <p class="hint">Only the beginning is shown. Copy has all.</p> : null}
        </div>
      )
    case 'table':
      return <TableView table={part.table} path={path} name={`${name}.csv`} />
  }
}

function Place({ path }: { readonly path: string }) {
  return path === '' ? null : <code class="faint">{path}</code>
}

/** A file: its address in this page while it is shown. It is decoded once. */
function FileView({ file, path, name }: { readonly file: FoundFile; readonly path: string; readonly name: string }) {
  const isSvg = file.type === 'image/svg+xml'
  const isShown = file.kind !== 'file' && !isSvg
  const [opened, setOpened] = useState<{ readonly blob: Blob; readonly address: string } | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  useEffect(() => {
    setOpened(null)
    setProblem(null)
    if (!isShown) return
    const end = new AbortController()
    let address = ''
    decodeFile(file, end.signal).then(
      blob => {
        if (end.signal.aborted) return
        address = URL.createObjectURL(blob)
        setOpened({ blob, address })
      },
      (error: Error) => end.signal.aborted || setProblem(error.message),
    )
    return () => {
      end.abort()
      if (address !== '') URL.revokeObjectURL(address)
    }
  }, [file.text, file.type])
  const fail = () => setProblem('The browser cannot show this file.')
  const save = async () => saveBlob(name, opened?.blob ?? (await decodeFile(file)))
  return (
    <figure class="part-file">
      {problem === null ? (
        <Media file={file} address={isSvg ? svgAddress(file) : (opened?.address ?? null)} path={path} onFail={fail} />
      ) : (
        <p class="bad-text">{problem}</p>
      )}
      <figcaption>
        <Place path={path} />
        <span class="faint">
          {file.type}, {bytes(file.bytes)}
        </span>
        <Button kind="quiet" onPress={save} aria-label={`Download ${name}`}>
          Download
        </Button>
      </figcaption>
    </figure>
  )
}

function Media({
  file,
  address,
  path,
  onFail,
}: {
  readonly file: FoundFile
  readonly address: string | null
  readonly path: string
  readonly onFail: () => void
}) {
  const words = `${file.kind} ${path}`.trim()
  if (file.kind === 'file') return null
  if (address === null) return <p class="faint">Reading the {file.kind}…</p>
  if (file.kind === 'image') return <img src={address} alt={words} onError={onFail} />
  const media = { src: address, controls: true, preload: 'metadata', 'aria-label': words, onError: onFail } as const
  // biome-ignore-start lint/a11y/useMediaCaption: workers make no captions
  return file.kind === 'audio' ? <audio {...media} /> : <video {...media} playsInline />
  // biome-ignore-end lint/a11y/useMediaCaption: workers make no captions
}

function TableView({
  table: { columns, rows },
  path,
  name,
}: {
  readonly table: FoundTable
  readonly path: string
  readonly name: string
}) {
  const save = () => download(name, csv([columns, ...rows.map(row => columns.map(column => cellValue(row[column])))]))
  return (
    <div role="group" aria-label={path === '' ? 'Table' : `Table of ${path}`}>
      <div class="part-head">
        <span>
          <Place path={path} />{' '}
          <span class="faint">
            {plural(rows.length, 'row')}
            {rows.length > MAX_ROWS ? `, the first ${MAX_ROWS} are shown` : ''}
          </span>
        </span>
        <Button kind="quiet" onPress={save} aria-label={`Download CSV ${name}`}>
          Download CSV
        </Button>
      </div>
      <div class="plain-table" tabIndex={0} role="group" aria-label="Rows">
        <table>
          <thead>
            <tr>
              {columns.map(column => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MAX_ROWS).map((row, at) => (
              <tr key={at}>
                {columns.map(column => (
                  <td key={column} class={typeof row[column] === 'number' ? 'number' : undefined}>
                    {cellText(row[column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  )
}
