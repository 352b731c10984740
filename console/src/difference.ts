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
