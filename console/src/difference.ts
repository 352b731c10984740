// The lines that differ between two texts, as a unified diff shows them. In: two texts. Out: lines with ' ', '+' or '-'.

export function lineDiff(before: string, after: string): string {
  const [a, b] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const [old, fresh] = [a.slice(start, a.length - end), b.slice(start, b.length - end)]
  const context = (lines: string[]): string[] => lines.map((line) => ` ${line}`)
  return [...context(a.slice(Math.max(0, start - 3), start)), ...changed(old, fresh), ...context(a.slice(a.length - end, a.length - end + 3))].join('\n')
}

// The longest common lines of what is left; texts that are too long for the table are shown as replaced whole.
function changed(a: string[], b: string[]): string[] {
  if (a.length * b.length > 4_000_000) return [...a.map((line) => `-${line}`), ...b.map((line) => `+${line}`)]
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) table[i]![j] = a[i] === b[j] ? table[i + 1]![j + 1]! + 1 : Math.max(table[i + 1]![j]!, table[i]![j + 1]!)
  const rows: string[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) (rows.push(` ${a[i]}`), i++, j++)
    else if (j >= b.length || (i < a.length && table[i + 1]![j]! >= table[i]![j + 1]!)) rows.push(`-${a[i++]}`)
    else rows.push(`+${b[j++]}`)
  }
  return rows
}

// For each line of the second text, which line of the first it is; undefined for a new one.
export function sameLines(before: string[], after: string[]): (number | undefined)[] {
  const found: (number | undefined)[] = []
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) found.push(start++)
  let end = 0
  while (end < before.length - start && end < after.length - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  let at = start
  for (const row of changed(before.slice(start, before.length - end), after.slice(start, after.length - end))) {
    if (row[0] === ' ') found.push(at++)
    else if (row[0] === '-') at++
    else found.push(undefined)
  }
  for (let n = end; n > 0; n--) found.push(before.length - n)
  return found
}

export interface Merged {
  text: string
  clashes: number // places that both changed, each in its own way: both texts stand there
}

// Two changes of one text, made one. In: that text, and what it was changed to twice.
export function merged(base: string, mine: string, theirs: string): Merged {
  const [o, a, b] = [base, mine, theirs].map((text) => text.split('\n')) as [string[], string[], string[]]
  const [inMine, inTheirs] = [placesOf(o, a), placesOf(o, b)]
  const rows: string[] = []
  let [at, mineAt, theirsAt, clashes] = [0, 0, 0, 0]
  for (let next = 0; next <= o.length; next++) {
    const [left, right] = next === o.length ? [a.length, b.length] : [inMine.get(next), inTheirs.get(next)]
    if (left === undefined || right === undefined) continue
    const [old, own, other] = [o.slice(at, next), a.slice(mineAt, left), b.slice(theirsAt, right)]
    if (isSame(own, old) || isSame(own, other)) rows.push(...other)
    else if (isSame(other, old)) rows.push(...own)
    else (clashes++, rows.push('# <<<<<<< yours', ...own, '# =======', ...other, '# >>>>>>> theirs'))
    if (next < o.length) rows.push(o[next]!)
    ;[at, mineAt, theirsAt] = [next + 1, left + 1, right + 1]
  }
  return { text: rows.join('\n'), clashes }
}

function placesOf(before: string[], after: string[]): Map<number, number> {
  return new Map(sameLines(before, after).flatMap((was, at) => (was === undefined ? [] : [[was, at] as const])))
}

function isSame(a: string[], b: string[]): boolean {
  return a.length === b.length && a.every((line, at) => line === b[at])
}
