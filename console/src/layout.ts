// Place the steps of a graph in layers, from top to bottom. In: nodes with their sizes, edges. Out: positions and paths.
// A thousand nodes take milliseconds: each pass looks at each edge once.

export interface Node {
  id: string
  width: number
  height: number
}

export interface Edge {
  from: string
  to: string
}

export interface Placed {
  x: number
  y: number
  width: number
  height: number
}

export interface Layout {
  width: number
  height: number
  nodes: Map<string, Placed>
  paths: { from: string; to: string; d: string }[]
}

const GAP_X = 24
const GAP_Y = 44
const GAP_ROW = 12 // between the rows of one layer
const BESIDE = 8 // how far from a box an edge runs past it: those that leave it at the right, those that come to it at the left
const PAST = 18 // how far from a layer an edge runs past all of it
const SWEEPS = 6

// `most`: a layer that is wider goes on in a row below, so that the graph fits its box.
export function layOut(nodes: Node[], edges: Edge[], most = Infinity): Layout {
  const known = new Set(nodes.map((node) => node.id))
  const links = edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to)
  const depths = depthsOf(nodes, links)
  const layers = orderLayers(nodes, links, depths)
  const placed = placeLayers(layers, most)
  const paths = links.map((link) => {
    const [from, to] = [depths.get(link.from)!, depths.get(link.to)!]
    const side = to - from > 1 ? Math.max(...placed.rights.slice(from, to + 1)) + PAST : undefined
    return { ...link, d: pathOf(placed, link, [placed.ends[from]!, placed.starts[to]!], side) }
  })
  return { width: placed.width, height: placed.height, nodes: placed.nodes, paths }
}

// The longest way to each node. A cycle, which a checked recipe cannot have, ends the walk instead of the page.
function depthsOf(nodes: Node[], edges: Edge[]): Map<string, number> {
  const waiting = new Map(nodes.map((node) => [node.id, 0]))
  const following = groupBy(edges, (edge) => edge.from)
  for (const edge of edges) waiting.set(edge.to, (waiting.get(edge.to) ?? 0) + 1)
  const depths = new Map(nodes.map((node) => [node.id, 0]))
  const ready = nodes.filter((node) => waiting.get(node.id) === 0).map((node) => node.id)
  for (let next = 0; next < ready.length; next++) {
    const id = ready[next]!
    for (const edge of following.get(id) ?? []) {
      depths.set(edge.to, Math.max(depths.get(edge.to)!, depths.get(id)! + 1))
      const left = waiting.get(edge.to)! - 1
      waiting.set(edge.to, left)
      if (left === 0) ready.push(edge.to)
    }
  }
  return depths
}

// Barycentre sweeps: a node moves towards the middle of its neighbours, so that fewer edges cross.
function orderLayers(nodes: Node[], edges: Edge[], depths: Map<string, number>): Node[][] {
  const layers: Node[][] = []
  for (const node of nodes) {
    const depth = depths.get(node.id)!
    ;(layers[depth] ??= []).push(node)
  }
  const before = groupBy(edges, (edge) => edge.to)
  const after = groupBy(edges, (edge) => edge.from)
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const places = new Map(layers.flatMap((layer) => layer.map((node, place) => [node.id, place / layer.length])))
    const isDown = sweep % 2 === 0
    for (const layer of isDown ? layers : [...layers].reverse()) {
      const middles = new Map(layer.map((node) => [node.id, middle(node.id, isDown)]))
      layer.sort((a, b) => middles.get(a.id)! - middles.get(b.id)!)
      layer.forEach((node, place) => places.set(node.id, place / layer.length))
    }
    function middle(id: string, down: boolean): number {
      const near = down ? before.get(id)?.map((edge) => edge.from) : after.get(id)?.map((edge) => edge.to)
      if (!near?.length) return places.get(id)!
      return near.reduce((sum, other) => sum + places.get(other)!, 0) / near.length
    }
  }
  return layers
}

interface PlacedLayers {
  width: number
  height: number
  nodes: Map<string, Placed>
  rights: number[] // where each layer ends at the right,
  starts: number[] // where it begins above,
  ends: number[] // and where it ends below
}

function placeLayers(layers: Node[][], most: number): PlacedLayers {
  const rowsOf = layers.map((layer) => broken(layer, most))
  const width = Math.max(0, ...rowsOf.flat().map(widthOf))
  const nodes = new Map<string, Placed>()
  const rights = rowsOf.map((rows) => (width + Math.max(...rows.map(widthOf))) / 2)
  const [starts, ends]: [number[], number[]] = [[], []]
  let y = 0
  for (const rows of rowsOf) {
    starts.push(y)
    const left = (width - widthOf(rows[0]!)) / 2
    for (const row of rows) {
      let x = left
      const height = Math.max(...row.map((node) => node.height))
      for (const node of row) {
        nodes.set(node.id, { x, y: y + (height - node.height) / 2, width: node.width, height: node.height })
        x += node.width + GAP_X
      }
      y += height + GAP_ROW
    }
    ends.push(y - GAP_ROW)
    y += GAP_Y - GAP_ROW
  }
  return { width, height: Math.max(0, y - GAP_Y), nodes, rights, starts, ends }
}

function widthOf(row: Node[]): number {
  return row.reduce((sum, node) => sum + node.width + GAP_X, -GAP_X)
}

// The rows of a layer. Where there are several, all its boxes are as wide as the widest, so that they stand in columns
// and edges can run down between these.
function broken(layer: Node[], most: number): Node[][] {
  if (widthOf(layer) <= most) return [layer]
  const width = Math.max(...layer.map((node) => node.width))
  const columns = Math.max(1, Math.floor((most + GAP_X) / (width + GAP_X)))
  const rows = Array.from({ length: Math.ceil(layer.length / columns) }, (_, row) => layer.slice(row * columns, (row + 1) * columns))
  return rows.map((row) => row.map((node) => ({ ...node, width })))
}

// An edge is never hidden behind a box, where it would seem to come from there: it goes from below its first box to above
// its second. Past other rows of a layer it runs beside the column (`end`, `start`: of the layers), and past whole layers
// at their `side`.
function pathOf({ nodes }: PlacedLayers, edge: Edge, [end, start]: [number, number], side: number | undefined): string {
  const [from, to] = [nodes.get(edge.from)!, nodes.get(edge.to)!]
  const isAbove = from.y + from.height < end - GAP_ROW
  const isBelow = to.y > start + GAP_ROW
  const right = from.x + from.width
  const x1 = isAbove ? right + BESIDE : from.x + from.width / 2
  const x2 = isBelow ? to.x - BESIDE : to.x + to.width / 2
  const [y1, y2] = [isAbove ? end : from.y + from.height, isBelow ? start : to.y]
  const middle1 = from.y + from.height / 2
  const middle2 = to.y + to.height / 2
  return [
    isAbove ? path('M', right, middle1) + path('Q', x1, middle1, x1, middle1 + BESIDE) + path('L', x1, y1) : path('M', x1, y1),
    side === undefined ? curve(x1, y1, x2, y2) : curve(x1, y1, side, y1 + GAP_Y) + path('L', side, y2 - GAP_Y) + curve(side, y2 - GAP_Y, x2, y2),
    isBelow ? path('L', x2, middle2 - BESIDE) + path('Q', x2, middle2, to.x, middle2) : '',
  ].join('')
}

// From above to below.
function curve(x1: number, y1: number, x2: number, y2: number): string {
  const bend = Math.max(16, (y2 - y1) / 2)
  return path('C', x1, y1 + bend, x2, y2 - bend, x2, y2)
}

function path(letter: string, ...places: number[]): string {
  return letter + places.map(round).join(' ')
}

function groupBy<T>(all: T[], key: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) {
    const group = groups.get(key(one))
    if (group) group.push(one)
    else groups.set(key(one), [one])
  }
  return groups
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
