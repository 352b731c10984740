"""Lines on a terminal, drawn over the last ones. The only module that imports rich's Live."""

from rich.console import Console, ConsoleRenderable, Group
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from stretto.cli.progress.frame import Line
from stretto.text.short import columns
from stretto.text.visible import encodable, visible_line


class Screen(Live):
    def __init__(self, console: Console) -> None:
        # Lines are drawn only by `show`: rich's own thread would write the same ones again.
        super().__init__(Group(), console=console, auto_refresh=False, vertical_overflow="crop")
        self._columns: list[int] = []  # how wide the lines on the screen are
        self._next_columns: list[int] = []

    def show(self, lines: list[Line]) -> None:
        text = Text(no_wrap=True, overflow="crop", end="")
        for i, line in enumerate(lines):
            text.append("\n" if i else "")
            for said, style in line:
                text.append(encodable(visible_line(said), self.console.encoding), style)
        self._next_columns = [columns("".join(said for said, _ in line)) for line in lines]
        # An empty text is a line too, and it would stay.
        self.update(text if lines else Group(), refresh=True)

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        # A terminal that became narrower has wrapped our lines, and rich, which counts lines,
        # would leave the rows that they grew by standing above the new ones.
        width = max(1, self.console.width)
        grown = sum(max(0, (each - 1) // width) for each in self._columns)
        self._columns = self._next_columns
        found = super().process_renderables(renderables)
        if not grown:
            return found
        erase = (ControlType.ERASE_IN_LINE, 2)
        upwards = [(ControlType.CURSOR_UP, 1), erase] * grown
        return [Control(ControlType.CARRIAGE_RETURN, erase, *upwards), *found]
