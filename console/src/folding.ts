// Show a graph of many steps as few boxes. In: steps. Out: boxes, each with the steps that it stands for.
import { shortened } from './words'

interface Foldable {
  id: string
  needs: string[]
}

export type Box<T> = T & { many: number }

export const MOST = 300 // above this, sub-workflows and finished layers would not be legible at once

// Steps with the same needs that are `alike` are one box, and so is a chain of such steps: a fan of five hundred, and a
// row of five hundred, are a few boxes.
export function folded<T extends Foldable>(steps: T[], alike: (step: T) => string): Box<T>[] {
  const boxes = fans(steps, alike)
  const heads = chains(boxes, alike)
  const many = new Map<string, number>()
  for (const box of boxes) many.set(heads.get(box.id)!, (many.get(heads.get(box.id)!) ?? 0) + box.many)
  return boxes
    .filter((box) => heads.get(box.id) === box.id)
    .map((box) => ({ ...box, needs: [...new Set(box.needs.map((need) => heads.get(need) ?? need))].filter((need) => need !== box.id), many: many.get(box.id)! }))
}

export function nameOf({ id, many = 1 }: { id: string; many?: number }): string {
  return many > 1 ? `${shortened(id, 12)} and ${many - 1} more` : id
}

function fans<T extends Foldable>(steps: T[], alike: (step: T) => string): Box<T>[] {
  const groups = new Map<string, T[]>()
  const owner = new Map<string, string>()
  const owned = (needs: string[]): string[] => [...new Set(needs.map((need) => owner.get(need) ?? need))].sort()
  for (const step of steps) {
    const key = JSON.stringify([owned(step.needs), alike(step)])
    const group = groups.get(key)
    if (group) group.push(step)
    else groups.set(key, [step])
    owner.set(step.id, groups.get(key)![0]!.id)
  }
  return [...groups.values()].map((group) => {
    const first = group[0]!
    const needs = owned(group.flatMap((step) => step.needs))
    return { ...first, needs: needs.filter((need) => need !== first.id), many: group.length }
  })
}

// For each box the first one of its chain: where one box needs just one other, which nothing else needs.
function chains<T extends Foldable>(boxes: Box<T>[], alike: (step: T) => string): Map<string, string> {
  const byId = new Map(boxes.map((box) => [box.id, box]))
  const users = new Map<string, number>()
  for (const box of boxes) for (const need of box.needs) users.set(need, (users.get(need) ?? 0) + 1)
  const heads = new Map<string, string>()
  for (const box of boxes) {
    const way = [box.id]
    for (let at = box; ; ) {
      const before = at.needs.length === 1 ? byId.get(at.needs[0]!) : undefined
      // A cycle, which a checked recipe cannot have, ends the walk.
      if (!before || users.get(before.id) !== 1 || alike(before) !== alike(at) || before.many > 1 !== at.many > 1 || way.includes(before.id)) break
      way.push(heads.get(before.id) ?? before.id)
      if (heads.has(before.id)) break
      at = before
    }
    for (const id of way) heads.set(id, way.at(-1)!)
  }
  return heads
}
