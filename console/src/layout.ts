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
    const side = to - from > 1 ? Math.max(...placed.rights.slice(from, to + 1)) + GAP_X / 2 : undefined
    return { ...link, d: pathOf(placed.nodes, link, side) }
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
  rights: number[] // where each layer ends
}

function placeLayers(layers: Node[][], most: number): PlacedLayers {
  const rowsOf = layers.map((layer) => broken(layer, most))
  const width = Math.max(0, ...rowsOf.flat().map(widthOf))
  const nodes = new Map<string, Placed>()
  const rights = rowsOf.map((rows) => (width + Math.max(...rows.map(widthOf))) / 2)
  let y = 0
  for (const rows of rowsOf) {
    for (const row of rows) {
      let x = (width - widthOf(row)) / 2
      const height = Math.max(...row.map((node) => node.height))
      for (const node of row) {
        nodes.set(node.id, { x, y: y + (height - node.height) / 2, width: node.width, height: node.height })
        x += node.width + GAP_X
      }
      y += height + GAP_ROW
    }
    y += GAP_Y - GAP_ROW
  }
  return { width, height: Math.max(0, y - GAP_Y), nodes, rights }
}

function widthOf(row: Node[]): number {
  return row.reduce((sum, node) => sum + node.width + GAP_X, -GAP_X)
}

function broken(layer: Node[], most: number): Node[][] {
  const rows: Node[][] = [[]]
  let width = 0
  for (const node of layer) {
    if (width && width + node.width > most) {
      rows.push([])
      width = 0
    }
    rows.at(-1)!.push(node)
    width += node.width + GAP_X
  }
  return rows
}

// `side`: where an edge that passes by other layers runs down, so that it is not hidden behind their boxes.
function pathOf(nodes: Map<string, Placed>, edge: Edge, side: number | undefined): string {
  const [from, to] = [nodes.get(edge.from)!, nodes.get(edge.to)!]
  if (side !== undefined) {
    const [x1, x2] = [round(from.x + from.width), round(to.x + to.width)]
    const [y1, y2] = [round(from.y + from.height / 2), round(to.y + to.height / 2)]
    return `M${x1} ${y1}C${side} ${y1} ${side} ${y1} ${side} ${y1 + 36}L${side} ${y2 - 36}C${side} ${y2} ${side} ${y2} ${x2} ${y2}`
  }
  const [x1, y1] = [round(from.x + from.width / 2), round(from.y + from.height)]
  const [x2, y2] = [round(to.x + to.width / 2), round(to.y)]
  const bend = round(Math.max(16, (y2 - y1) / 2))
  return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`
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
