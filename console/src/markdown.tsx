// Show what a model wrote. In: Markdown of a stranger. Out: elements made of text alone.
// HTML stays text, images are named and never loaded, links lead to http, https and mailto only and show their host.
import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'

// Escape sequences and the characters that reorder text say nothing to a browser and hide things from a reader.
const CONTROLS = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g
// Characters that nobody sees, but a model reads. Not the joiners between letters that are not Latin: Persian, Hindi and
// families of emoji are written with them.
const UNSEEN = /(?:[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|(?<![^\0-\u05ff])[\u200c\u200d]|[\u200c\u200d](?![^\0-\u05ff]))+/gu

export function plain(text: string): string {
  return text.replace(CONTROLS, '').replace(UNSEEN, standIn)
}

// Whoever reads a prompt that is to be approved must know that there is more in it than can be read.
function standIn(hidden: string): string {
  const many = [...hidden].length
  return many < 3 ? '\ufffd'.repeat(many) : `[${many} hidden characters]`
}

const AT_ONCE = 50_000 // letters of one text: a browser stands still over some megabytes

// A long text is shown from its beginning, and says how much there is.
function Long({ text, children }: { text: string; children: (text: string) => JSX.Element }): JSX.Element {
  const [most, setMost] = useState(AT_ONCE)
  if (text.length <= most) return children(text)
  return (
    <>
      {children(text.slice(0, most))}
      <p class="small bar"><span class="state warn" data-mark="…">The first {most.toLocaleString('en')} of {text.length.toLocaleString('en')} characters.</span> <button type="button" class="tight" onClick={() => setMost(most * 5)}>Show more</button></p>
    </>
  )
}

export function Prose({ text }: { text: string }): JSX.Element {
  return <Long text={text}>{(shown) => <div class="prose">{blocks(plain(shown).split(/\r?\n/))}</div>}</Long>
}

// A text to the letter, but for what no reader could see.
export function Raw({ text, label, is }: { text: string; label?: string; is?: string }): JSX.Element {
  return <Long text={text}>{(shown) => <pre class={is} tabIndex={0} aria-label={label}>{plain(shown)}</pre>}</Long>
}

function blocks(lines: string[]): ComponentChildren[] {
  const made: ComponentChildren[] = []
  let at = 0
  while (at < lines.length) {
    const line = lines[at]!
    const fence = /^\s{0,3}(```+|~~~+)/.exec(line)
    const heading = /^(#{1,6})\s+(.*)$/.exec(line)
    if (fence) {
      const end = endOf(lines, at + 1, (other) => other.trim().startsWith(fence[1]!))
      made.push(<pre tabIndex={0}>{lines.slice(at + 1, end).join('\n')}</pre>)
      at = end + 1
    } else if (heading) {
      made.push(<p><strong>{inline(heading[2]!)}</strong></p>) // the page has its own outline
      at++
    } else if (isItem(line)) {
      const end = endOf(lines, at + 1, (other) => !isItem(other) && !/^\s+\S/.test(other))
      made.push(list(lines.slice(at, end)))
      at = end
    } else if (isTable(lines, at)) {
      const end = endOf(lines, at + 2, (other) => !other.trim().startsWith('|'))
      made.push(table(lines.slice(at, end)))
      at = end
    } else if (QUOTE.test(line)) {
      const end = endOf(lines, at + 1, (other) => !QUOTE.test(other))
      made.push(<blockquote>{inline(lines.slice(at, end).map((each) => each.replace(QUOTE, '')).join('\n'))}</blockquote>)
      at = end
    } else if (!line.trim()) {
      at++
    } else {
      const end = endOf(lines, at + 1, (other, place) => !other.trim() || isItem(other) || isTable(lines, place) || QUOTE.test(other) || /^(#{1,6}\s|\s{0,3}(```|~~~))/.test(other))
      made.push(<p>{inline(lines.slice(at, end).join('\n'))}</p>)
      at = end
    }
  }
  return made
}

const QUOTE = /^\s{0,3}> ?/

function endOf(lines: string[], from: number, isEnd: (line: string, at: number) => boolean): number {
  let at = from
  while (at < lines.length && !isEnd(lines[at]!, at)) at++
  return at
}

function isItem(line: string): boolean {
  return /^\s*([-*+]|\d{1,9}[.)])\s+/.test(line)
}

function list(lines: string[]): JSX.Element {
  const items: string[] = []
  for (const line of lines) {
    if (isItem(line)) items.push(line.replace(/^\s*([-*+]|\d{1,9}[.)])\s+/, ''))
    else items[items.length - 1] += `\n${line.trim()}`
  }
  const rows = items.map((item) => <li>{inline(item)}</li>)
  return /^\s*\d/.test(lines[0]!) ? <ol>{rows}</ol> : <ul>{rows}</ul>
}

// A row of cells above a row of dashes.
function isTable(lines: string[], at: number): boolean {
  return lines[at]!.trim().startsWith('|') && /^\s*\|[\s:|-]*-[\s:|-]*$/.test((lines[at + 1] ?? '').slice(0, 2000))
}

function cells(line: string): string[] {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'))
}

function table([head, , ...rows]: string[]): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      <table>
        <thead><tr>{cells(head!).map((cell, number) => <th key={number}>{inline(cell)}</th>)}</tr></thead>
        <tbody>{rows.map((row, number) => <tr key={number}>{cells(row).map((cell, place) => <td key={place}>{inline(cell)}</td>)}</tr>)}</tbody>
      </table>
    </div>
  )
}

// One expression a kind, none of them nested: the time is linear in the text.
const INLINE = /\\([!-/:-@[-`{-~])|`([^`\n]{1,2000})`|\*\*([^*\n]{1,2000})\*\*|\*([^*\s][^*\n]{0,2000})\*|(!?)\[([^\]\n]{0,500})\]\(([^()\s]{1,2000})\)/g

function inline(text: string): ComponentChildren[] {
  const made: ComponentChildren[] = []
  let last = 0
  for (const found of text.matchAll(INLINE)) {
    made.push(text.slice(last, found.index))
    last = found.index + found[0].length
    const [whole, escaped, code, strong, emphasis, image, label, address] = found
    if (escaped !== undefined) made.push(escaped) // a mark that its writer does not mean as one
    else if (code !== undefined) made.push(<code>{code}</code>)
    else if (strong !== undefined) made.push(<strong>{strong}</strong>)
    else if (emphasis !== undefined) made.push(<em>{emphasis}</em>)
    else if (image) made.push(`[image: ${label || 'without a name'}]`)
    else made.push(link(whole, label!, address!))
  }
  made.push(text.slice(last))
  return made
}

function link(whole: string, label: string, address: string): ComponentChildren {
  let url: URL
  try {
    url = new URL(address)
  } catch {
    return whole
  }
  if (!['http:', 'https:', 'mailto:'].includes(url.protocol)) return whole
  return (
    <>
      <a href={url.href} rel="noopener noreferrer nofollow" target="_blank">{label || url.host}</a>
      {url.host && label !== url.host ? <span class="quiet small"> ({url.host})</span> : null}
    </>
  )
}

const MARKUP = /[*`#>|[\]\n]/ // plain words look the same either way

// JSON is shown as it is, indented; text that is prose is rendered, and can be unfolded as it was written.
export function Value({ value }: { value: unknown }): JSX.Element {
  if (value === null || value === undefined) return <p class="quiet">(none)</p>
  if (typeof value !== 'string') return <Raw text={JSON.stringify(value, null, 2)} />
  return (
    <>
      <Prose text={value} />
      {MARKUP.test(value) ? <Written text={value} /> : null}
    </>
  )
}

function Written({ text }: { text: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <details class="small raw" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As it was written</summary>
      {isOpen ? <Raw text={text} /> : null}
    </details>
  )
}
