// The text of a workflow, with its problems at the lines where they are.
import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { open } from '../codemirror'
import type { Problem } from '../types'
import { WrittenText } from '../written'

export default function Text({ text, problems }: { text: string; problems: Problem[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const view = open(box.current!, new WrittenText(text).shown)
    view.show(problems.filter((each) => !/^RCP9/.test(each.code)), problems.filter((each) => /^RCP9/.test(each.code)))
    return () => view.destroy()
  }, [text])
  return <div ref={box} class="editor" />
}
