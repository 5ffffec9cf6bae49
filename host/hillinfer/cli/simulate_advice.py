"""``hillinfer simulate fit``: which context fits which box at what speed, and what another part would change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hillinfer.cli.bench import numbers, progress, whole_numbers, write_result
from hillinfer.cli.console import human_bytes, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output, writable
from hillinfer.cli.simulate import simulate_app
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.simulation.advice.report import Advice

_BOX = "The box"
_PLOTS = (".svg", ".png", ".pdf")


@simulate_app.command("fit")
def fit_command(
    model: Annotated[str, typer.Option(help="A model's shape by name; a wrong one is told the nearest.")] = (
        "llama-3.1-8b"
    ),
    contexts: Annotated[str, typer.Option(help="Tokens per sequence, by commas; 32k is 32,768.")] = "8k,32k,128k",
    batches: Annotated[str, typer.Option(help="Sequences at once, by commas.")] = "1,4",
    methods: Annotated[
        str, typer.Option(help="hillinfer, full, h2o, leoam, infinigen, by commas.", show_default="all")
    ] = "",
    hardware: Annotated[
        str, typer.Option(help="A box by name (paper, here) or a file.", rich_help_panel=_BOX)
    ] = "paper",
    gpu_memory: Annotated[
        str | None, typer.Option(help="Another size: 12GB.", show_default="the box's", rich_help_panel=_BOX)
    ] = None,
    dram: Annotated[
        str | None, typer.Option(help="Another size: 32GB.", show_default="the box's", rich_help_panel=_BOX)
    ] = None,
    ssd: Annotated[
        str | None, typer.Option(help="Another size: 2TB.", show_default="the box's", rich_help_panel=_BOX)
    ] = None,
    cards: Annotated[
        int | None, typer.Option(help="SmartSSDs in it.", show_default="the box's", rich_help_panel=_BOX)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw ms against context: .svg, .png or .pdf.", show_default=False, callback=writable),
    ] = None,
    output: Output = Path("build/reports/simulate-fit.json"),
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Which context fits a box, where its KV cache would lie, and how fast HillInfer and its rivals decode there.

    Then the same with another part: twice the SmartSSDs, a PCIe 5 SSD, twice the DRAM. Times are the timing model's,
    from recorded selections of SmolLM2 on English text, scaled: a comparison, not a promise.
    """
    lengths, sizes = _tokens(contexts), whole_numbers(batches, "batches")
    if not lengths or not sizes or min(*lengths, *sizes) < 1:
        raise SettingError("fit needs contexts and batches of at least 1")
    from hillinfer.simulation import hardware as boxes
    from hillinfer.simulation import shape as shapes
    from hillinfer.simulation.advice import report
    from hillinfer.simulation.advice.variants import custom

    shape = shapes.named(model)
    box = custom(
        boxes.load(hardware),
        gpu_memory=_size(gpu_memory, "gpu-memory"),
        dram=_size(dram, "dram"),
        ssd=_size(ssd, "ssd"),
        cards=cards,
    )
    if plot is not None:
        from hillinfer.figures.canvas import check_matplotlib

        if plot.suffix.lower() not in _PLOTS:
            raise SettingError(f"--plot is {plot}: name a file that ends in {', '.join(_PLOTS[:-1])} or {_PLOTS[-1]}")
        check_matplotlib()
    chosen = [name.strip() for name in methods.split(",") if name.strip()]
    with progress() as say:
        advice = report.advise(box, shape, lengths, sizes, chosen, say)
    result = report.as_dict(advice)
    write_result(output, result)
    if plot is not None:
        from hillinfer.simulation.advice.plot import draw

        try:
            draw(advice, plot)
        except OSError as error:
            raise SettingError(f"{plot} cannot be written ({error.strerror}): name another with --plot") from None
    if as_json:
        write_json(result)
        return
    console = stdout()
    console.width = max(console.width, 130)
    console.print(box_table(advice))
    console.print(variants_table(advice))
    console.print(f"written: {', '.join(str(path) for path in (output, plot) if path is not None)}")


def box_table(advice: Advice) -> Table:
    """Every context, batch and method on the box as it is."""
    first = advice.cells[0].tiers
    room = f"{human_bytes(first.weights)} of weights, {human_bytes(first.dram_free)} of DRAM left by them"
    table = Table(title=f"{advice.shape.name} on {advice.hardware.name}: {room}", title_justify="left")
    for heading in ("context", "batch", "KV cache", "method", "ms/step", "tokens/s", "where the KV lies"):
        table.add_column(heading, justify="left" if heading in ("method", "where the KV lies") else "right")
    before = None
    for cell in advice.cells:
        here = (cell.context, cell.batch)
        if before not in (None, here):
            table.add_section()
        before = here
        speed = ("–", "–") if cell.ms is None else (f"{cell.ms:.1f}", f"{1e3 * cell.batch / cell.ms:.1f}")
        place = f"does not fit: {cell.why}" if cell.ms is None else cell.where
        table.add_row(f"{cell.context:,}", str(cell.batch), human_bytes(cell.tiers.kv), cell.method, *speed, place)
    return table


def variants_table(advice: Advice) -> Table:
    """The first method with another part in the box, ms per step."""
    method = advice.cells[0].method
    table = Table(title=f"{method} with another part, ms per step", title_justify="left")
    for heading in ("context", "batch", *advice.of_variants):
        table.add_column(heading, justify="right")
    times = {
        (name, cell.context, cell.batch): cell.ms
        for name, cells in advice.of_variants.items()
        for cell in cells
        if cell.method == method
    }
    for context, batch in dict.fromkeys((cell.context, cell.batch) for cell in advice.cells):
        found = [times.get((name, context, batch)) for name in advice.of_variants]
        table.add_row(f"{context:,}", str(batch), *("–" if ms is None else f"{ms:.1f}" for ms in found))
    return table


def _tokens(text: str) -> list[int]:
    """Lengths between commas; k is for 1024."""
    found = []
    for part in text.split(","):
        kilo = part.strip().lower().endswith("k")
        found += [number * (1024 if kilo else 1) for number in numbers(part.strip().rstrip("kK"), "contexts")]
    if not all(number.is_integer() for number in found):
        raise SettingError(f"--contexts is {text!r}: write whole numbers of tokens with commas between them")
    return [int(number) for number in found]


def _size(text: str | None, option: str) -> int | None:
    from hillinfer.config import parse_size

    if text is None:
        return None
    size = parse_size(text)
    if size is None:
        raise SettingError(f"--{option} is {text!r}: write a size such as 24GB")
    return size
