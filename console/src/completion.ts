// Where in a recipe the cursor stands, and what may be written there. In: lines, a place, the JSON schema. Out: words.
// It goes by indentation and not by a parsed document: a text that is being written is seldom one.

export interface Schema {
  $ref?: string
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  definitions?: Record<string, Schema>
}

export interface Spot {
  path: string[] // the keys above, '[]' for an item of a list
  key: string // whose value is written; empty: a key is
  siblings: string[]
  word: string
}

export interface Offer {
  text: string
  about: string
  isKey: boolean
}

const LISTS = ['tools', 'disallowed_tools'] // which may be written with commas alone
const ENDINGS = ['inline', 'skip', 'block', 'abort']
const LINE = /^(\s*)((?:- +)*)(?:"?([\w$-]+)"?\s*:(?:\s+(.*))?)?/

export function spotAt(lines: string[], row: number, column: number): Spot | undefined {
  const before = (lines[row] ?? '').slice(0, column)
  const open = openBrackets(lines, row, column)
  if (!open) return undefined
  if (open.length) return flowSpot(lines, open)
  const [, blank = '', dashes = ''] = LINE.exec(before)!
  const rest = before.slice(blank.length + dashes.length)
  const above = pathAbove(lines, row, blank.length, dashes)
  if (!above) return undefined
  // A value begins behind a blank here, and a list without brackets holds one word a line.
  if (/^["']?[\w$-]+["']?\s*:(?=\S)/.test(rest)) return undefined
  const spot = written(above.path, above.siblings, rest)
  return dashes && spot && !spot.key && above.path.at(-1) === '[]' ? { ...spot, word: /[\w/.:*()-]*$/.exec(rest)![0] } : spot
}

interface Bracket {
  isMap: boolean
  row: number
  column: number
  keys: string[] // of this mapping, as far as they are written
  piece: string // what stands behind the last comma
}

// What may not be completed at all: a comment, a text of several lines. Else the brackets that are open, outermost first.
function openBrackets(lines: string[], row: number, column: number): Bracket[] | undefined {
  const open: Bracket[] = []
  let [quote, block] = ['', -1] // block: the column of the key whose text goes on while lines are further to the right
  for (let at = 0; at <= row; at++) {
    const line = lines[at]!
    const blank = line.length - line.trimStart().length
    if (block >= 0 && (!line.trim() || blank > block)) {
      if (at === row) return undefined
      continue
    }
    block = -1
    let isFresh = !quote // a value, a key or a bracket may begin here
    const end = at === row ? column : line.length
    for (let n = 0; n < end; n++) {
      const letter = line[n]!
      const inner = open.at(-1)
      if (quote) {
        if (letter === '\\' && quote === '"') n++
        else if (letter === quote) quote = ''
      } else if (letter === '#' && (n === 0 || /\s/.test(line[n - 1]!))) {
        if (at === row) return undefined
        break
      } else if (isFresh && (letter === '"' || letter === "'")) [quote, isFresh] = [letter, false]
      else if (isFresh && (letter === '{' || letter === '[')) {
        if (inner) inner.piece += ' '
        open.push({ isMap: letter === '{', row: at, column: n, keys: [], piece: '' })
        continue
      } else if (inner && (letter === '}' || letter === ']')) {
        open.pop()
        isFresh = false
        continue
      } else if (inner && letter === ',') {
        const key = keyOf(inner.piece)
        if (key) inner.keys.push(key)
        inner.piece = ''
        isFresh = true
        continue
      } else if (letter === ':' && (inner ? /[\s"']/.test(line[n - 1] ?? ' ') || /^(\s|$)/.test(line.slice(n + 1)) : /^(\s|$)/.test(line.slice(n + 1)))) isFresh = true
      else if (!inner && isFresh && /^[|>][-+\d]*\s*(#.*)?$/.test(line.slice(n))) {
        const [, space = '', items = '', key] = LINE.exec(line)!
        block = key ? space.length + items.length : Math.max(0, space.length + items.length - 2)
        break
      } else if (!/\s/.test(letter) && !(isFresh && !inner && /^[-?](\s|$)/.test(line.slice(n)))) isFresh = false
      if (inner) inner.piece += letter
    }
    if (open.length && at < row) open.at(-1)!.piece += ' '
  }
  return open
}

function keyOf(piece: string): string {
  return /^\s*["']?([\w$-]+)["']?\s*:/.exec(piece)?.[1] ?? ''
}

// Inside of { … } or [ … ], whether on one line or on several.
function flowSpot(lines: string[], open: Bracket[]): Spot | undefined {
  const [first, last] = [open[0]!, open.at(-1)!]
  const owner = blockOwner(lines, first.row, lines[first.row]!.slice(0, first.column))
  if (!owner) return undefined
  const path = [...owner.path, ...(owner.key ? [owner.key] : [])]
  for (const each of open.slice(0, -1)) path.push(each.isMap ? keyOf(each.piece) : '[]')
  const piece = last.piece.trimStart()
  if (!last.isMap) return /^["']?[\w/.:*()-]*$/.test(piece) ? { path: [...path, '[]'], key: '', siblings: [], word: piece.replace(/^["']/, '') } : undefined
  return written(path, last.keys, piece)
}

// `key: va` or `ke`, with a quote before it or without.
function written(path: string[], siblings: string[], piece: string): Spot | undefined {
  const value = /^["']?([\w$-]+)["']?\s*:\s*["']?((?:[\w/.:*()-]+,\s*)*)([\w/.:*()-]*)$/.exec(piece)
  if (value) return !value[2] || LISTS.includes(value[1]!) ? { path, key: value[1]!, siblings, word: value[3]! } : undefined
  const key = /^["']?([\w$-]*)$/.exec(piece)
  return key ? { path, key: '', siblings, word: key[1]! } : undefined
}

function blockOwner(lines: string[], row: number, head: string): Spot | undefined {
  const [, blank = '', dashes = '', key = ''] = LINE.exec(head)!
  const above = pathAbove(lines, row, blank.length, dashes)
  return above && { path: above.path, key, siblings: [], word: '' }
}

function pathAbove(lines: string[], row: number, blank: number, dashes: string): { path: string[]; siblings: string[] } | undefined {
  const path: string[] = dashes ? Array<string>(dashes.split('-').length - 1).fill('[]') : []
  const siblings: string[] = []
  let column = blank + dashes.length
  let limit = dashes ? blank : column // keys further to the left own it; those of a list may stand in the column of its dash
  let isOwnItem = !dashes
  for (let at = row - 1; at >= 0; at--) {
    const line = lines[at]!
    if (!line.trim() || line.trimStart().startsWith('#')) continue
    const [, space = '', items = '', key, value = ''] = LINE.exec(line)!
    const place = space.length + items.length
    if (isOwnItem && place === column && key) {
      if (path.length === 0) siblings.push(key)
      if (items) {
        path.unshift(...Array<string>(items.split('-').length - 1).fill('[]'))
        ;[limit, isOwnItem, column] = [space.length, false, space.length]
      }
      continue
    }
    const isOwner = key !== undefined && (isOwnItem ? place < column : place <= limit && !items ? true : place < limit)
    if (!isOwner) continue
    if (/^[|>]/.test(value)) return undefined // inside of a text
    path.unshift(key)
    ;[column, limit, isOwnItem] = [place, place, true]
    if (items) {
      path.unshift(...Array<string>(items.split('-').length - 1).fill('[]'))
      ;[limit, isOwnItem, column] = [space.length, false, space.length]
    }
    if (column === 0) break
  }
  return { path, siblings: [...siblings, ...below(lines, row, blank + dashes.length)] }
}

function below(lines: string[], row: number, column: number): string[] {
  const found: string[] = []
  for (let at = row + 1; at < lines.length; at++) {
    const [, space = '', items = '', key] = LINE.exec(lines[at]!)!
    if (!lines[at]!.trim()) continue
    if (space.length < column) break
    if (!items && space.length === column && key) found.push(key)
  }
  return found
}

// What there is to name, by kind.
export interface Names {
  agents: Named[]
  steps: Named[]
  tools: Named[]
  models: Named[]
  workflows: Named[]
  folders: Named[]
}

export interface Named {
  name: string
  about: string
}

export function offersAt(spot: Spot, schema: Schema, names: Names): Offer[] {
  const named = namesFor(spot, names)
  if (named) return named.map(({ name, about }) => ({ text: name, about, isKey: false }))
  const schemas = schemasAt(schema, spot.path)
  if (spot.key) return schemas.flatMap((each) => allOf(schema, each.properties?.[spot.key])).flatMap(valuesOf)
  const keys = new Map(schemas.flatMap((each) => Object.entries(each.properties ?? {})))
  const offers = [...keys].filter(([key]) => !spot.siblings.includes(key)).map(([text, each]) => ({ text, about: each.description ?? '', isKey: true }))
  return offers.length ? offers : schemas.flatMap(valuesOf)
}

function namesFor(spot: Spot, names: Names): Named[] | undefined {
  const isItem = !spot.key && spot.path.at(-1) === '[]'
  const [key, above] = isItem ? [spot.path.at(-2) ?? '', spot.path.slice(0, -2)] : [spot.key, spot.path]
  const targets = [...names.steps, ...names.agents]
  if (['agent', 'subagent', 'reduce', 'validator'].includes(key)) return names.agents
  if (key === 'depends_on') return names.steps
  if (key === 'tools' || key === 'disallowed_tools') return names.tools
  if (key === 'model' || key === 'fallback_models') return names.models
  if (key === 'workflow' && above.length) return names.workflows
  if (key === 'read_set' || key === 'write_set') return names.folders
  if (key === 'on_failure') return [...ENDINGS.map((name) => ({ name, about: '' })), ...names.agents.map(({ name }) => ({ name: `fallback:${name}`, about: 'an agent that gets the same' }))]
  const owner = above.at(-1) ?? ''
  if ((owner === 'condition' && ['true', 'false'].includes(key)) || (owner === 'switch' && key === 'default')) return targets
  return owner === 'cases' && above.at(-2) === 'switch' && key ? targets : undefined
}

function valuesOf(schema: Schema): Offer[] {
  const about = schema.description ?? ''
  const said = schema.enum ?? (schema.const === undefined ? [] : [schema.const])
  const types = [schema.type ?? []].flat()
  const values = types.includes('boolean') && !said.length ? ['true', 'false'] : said.map(String)
  return values.map((text) => ({ text, about, isKey: false }))
}

function schemasAt(root: Schema, path: string[]): Schema[] {
  let found = allOf(root, root.definitions?.[path[0] === 'workflow' ? 'wrapped' : 'recipe'])
  for (const part of path)
    found = found.flatMap((each) => {
      const next = part === '[]' ? each.items : (each.properties?.[part] ?? (typeof each.additionalProperties === 'object' ? each.additionalProperties : undefined))
      return allOf(root, next)
    })
  return found
}

function allOf(root: Schema, schema: Schema | undefined): Schema[] {
  if (!schema) return []
  if (schema.$ref) return allOf(root, root.definitions?.[schema.$ref.split('/').at(-1)!])
  return [schema, ...(schema.anyOf ?? []).flatMap((each) => allOf(root, { description: schema.description, ...each }))]
}
