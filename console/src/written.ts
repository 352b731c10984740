// A text as its file has it, and as an editor shows it. In: a file's text. Out: lines that end with '\n', and the way back:
// a byte order mark, line ends of every kind and a missing last one are as they were wherever the author changed nothing.
import { sameLines } from './difference'

const BREAK = /\r\n|\n|\r/
const BREAKS = /\r\n|\n|\r/g
const MARK = '\ufeff'

export class WrittenText {
  readonly shown: string
  private readonly lines: string[]
  private readonly ends: string[]
  private readonly usual: string

  constructor(private readonly text: string) {
    const body = text.startsWith(MARK) ? text.slice(1) : text
    this.lines = body.split(BREAK)
    this.ends = body.match(BREAKS) ?? []
    this.shown = this.lines.join('\n')
    const windows = this.ends.filter((end) => end === '\r\n').length
    this.usual = windows * 2 > this.ends.length ? '\r\n' : '\n'
  }

  // The file's text, once its lines are these.
  restored(shown: string): string {
    if (shown === this.shown) return this.text
    const mark = this.text.startsWith(MARK) ? MARK : ''
    const lines = shown.split('\n')
    const isUniform = this.ends.every((end) => end === this.usual)
    const was = isUniform ? [] : sameLines(this.lines, lines)
    return mark + lines.map((line, at) => line + (at === lines.length - 1 ? '' : (this.ends[was[at] ?? -1] ?? this.usual))).join('')
  }
}

// The smallest piece that makes one text of another: the cursor and the undo history keep what lies outside of it.
export function change(before: string, after: string): { from: number; to: number; insert: string } {
  const shortest = Math.min(before.length, after.length)
  let start = 0
  while (start < shortest && before[start] === after[start]) start++
  let end = 0
  while (end < shortest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) }
}
