/** Markdown on a page. Nothing of it is HTML, nothing is loaded from elsewhere, and links are http and https alone. */
import { type ComponentChildren, createElement, type VNode } from 'preact'
import { useMemo } from 'preact/hooks'
import { Code } from '../basic.tsx'
import { findFile, isLink } from './detect.ts'
import { type Block, type Inline, readMarkdown } from './markdown.ts'

/** A text of a model, formatted. */
export function MarkdownView({ text }: { readonly text: string }) {
  const blocks = useMemo(() => readMarkdown(text), [text])
  return <div class="markdown">{blocks.map(blockView)}</div>
}

function blockView(block: Block, key: number): VNode {
  switch (block.is) {
    case 'heading':
      // No heading of the page: those of a text may begin at any level.
      return (
        <p key={key} class={`title level-${block.level}`}>
          {block.of.map(inlineView)}
        </p>
      )
    case 'code':
      return <Code key={key} text={block.text} what={block.language === '' ? 'code' : `${block.language} code`} />
    case 'list':
      return block.start === null ? (
        <ul key={key}>{block.items.map(itemView)}</ul>
      ) : (
        <ol key={key} start={block.start}>
          {block.items.map(itemView)}
        </ol>
      )
    case 'quote':
      return <blockquote key={key}>{block.of.map(blockView)}</blockquote>
    case 'table':
      return (
        <div key={key} class="plain-table" tabIndex={0} role="group" aria-label="Table in the text">
          <table>
            <thead>
              <tr>
                {block.head.map((cell, at) => (
                  <th key={at} scope="col">
                    {cell.map(inlineView)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell.map(inlineView)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )
    case 'rule':
      return <hr key={key} />
    case 'text':
      return <p key={key}>{block.of.map(inlineView)}</p>
  }
}

function itemView(blocks: readonly Block[], key: number): VNode {
  const [only] = blocks
  return (
    <li key={key}>{blocks.length === 1 && only?.is === 'text' ? only.of.map(inlineView) : blocks.map(blockView)}</li>
  )
}

function inlineView(part: Inline, key: number): ComponentChildren {
  if (typeof part === 'string') return part
  switch (part.is) {
    case 'code':
      return <code key={key}>{part.text}</code>
    case 'link':
      return isLink(part.url) ? (
        <Elsewhere key={key} url={part.url}>
          {part.of.map(inlineView)}
        </Elsewhere>
      ) : (
        <span key={key}>{part.of.map(inlineView)}</span>
      )
    case 'image': {
      if (findFile(part.url)?.kind === 'image') return <img key={key} src={part.url} alt={part.text || 'Image'} />
      const words = `image: ${part.text || part.url}`
      return isLink(part.url) ? (
        <Elsewhere key={key} url={part.url}>
          {words}
        </Elsewhere>
      ) : (
        <span key={key}>{words}</span>
      )
    }
    default:
      return createElement(part.is, { key }, part.of.map(inlineView))
  }
}

/** A link to another place, which learns nothing of this page. */
export function Elsewhere({ url, children }: { readonly url: string; readonly children: ComponentChildren }) {
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
