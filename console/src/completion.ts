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

const LINE = /^(\s*)((?:- +)*)(?:"?([\w$-]+)"?\s*:(?:\s+(.*))?)?/

export function spotAt(lines: string[], row: number, column: number): Spot | undefined {
  const before = (lines[row] ?? '').slice(0, column)
  const flow = flowSpot(lines, row, before)
  if (flow) return flow
  const [, blank = '', dashes = ''] = LINE.exec(before)!
  const rest = before.slice(blank.length + dashes.length)
  const above = pathAbove(lines, row, blank.length, dashes)
  if (!above) return undefined
  const value = /^"?([\w$-]+)"?\s*:\s+["']?([\w/.-]*)$/.exec(rest)
  if (value) return { path: above.path, key: value[1]!, siblings: above.siblings, word: value[2]! }
  const key = /^["']?([\w$-]*)$/.exec(rest)
  return key ? { path: above.path, key: '', siblings: above.siblings, word: key[1]! } : undefined
}

// Inside of { … } or [ … ] on one line.
function flowSpot(lines: string[], row: number, before: string): Spot | undefined {
  const open: number[] = []
  let quote = ''
  for (let at = 0; at < before.length; at++) {
    const letter = before[at]!
    if (quote) quote = letter === quote ? '' : quote
    else if (letter === '"' || letter === "'") quote = letter
    else if (letter === '{' || letter === '[') open.push(at)
    else if (letter === '}' || letter === ']') open.pop()
  }
  const start = open.at(-1)
  if (start === undefined) return undefined
  const head = before.slice(0, start)
  const outer = open.length > 1 ? flowSpot(lines, row, head) : blockOwner(lines, row, head)
  if (!outer) return undefined
  const path = [...outer.path, ...(outer.key ? [outer.key] : [])]
  const inside = before.slice(start + 1)
  const piece = inside.slice(Math.max(inside.lastIndexOf(','), -1) + 1).trimStart()
  if (before[start] === '[') return /^["']?[\w-]*$/.test(piece) ? { path: [...path, '[]'], key: '', siblings: [], word: piece.replace(/^["']/, '') } : undefined
  const siblings = [...inside.matchAll(/(?:^|,)\s*"?([\w$-]+)"?\s*:/g)].map((found) => found[1]!)
  const value = /^"?([\w$-]+)"?\s*:\s*["']?([\w/.-]*)$/.exec(piece)
  if (value) return { path, key: value[1]!, siblings, word: value[2]! }
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

export function offersAt(spot: Spot, schema: Schema, names: { agents: string[]; steps: string[] }): Offer[] {
  const schemas = schemasAt(schema, spot.path)
  const named = namesFor(spot, names)
  if (named) return named.map((text) => ({ text, about: names.steps.includes(text) ? 'step' : 'agent', isKey: false }))
  if (spot.key) return schemas.flatMap((each) => allOf(schema, each.properties?.[spot.key])).flatMap(valuesOf)
  const keys = new Map(schemas.flatMap((each) => Object.entries(each.properties ?? {})))
  return [...keys].filter(([key]) => !spot.siblings.includes(key)).map(([text, each]) => ({ text, about: each.description ?? '', isKey: true }))
}

function namesFor(spot: Spot, { agents, steps }: { agents: string[]; steps: string[] }): string[] | undefined {
  const at = spot.path.join('.')
  if (['agent', 'subagent', 'reduce', 'validator'].includes(spot.key)) return agents
  if (spot.key === 'depends_on' || at.endsWith('depends_on.[]')) return steps
  if (/(^|\.)condition$/.test(at) && ['true', 'false'].includes(spot.key)) return [...steps, ...agents]
  if ((/(^|\.)switch$/.test(at) && spot.key === 'default') || (/(^|\.)switch\.cases$/.test(at) && spot.key)) return [...steps, ...agents]
  return undefined
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
