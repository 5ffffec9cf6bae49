"""``hillinfer bench balance``: the split of the scoring between host and device, measured beside the formula's."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.bench import REPORTS, ColdDir, bench_app, percent, show_table, write_result
from hillinfer.cli.calibrate import shape_of
from hillinfer.cli.console import stderr, stdout, write_json
from hillinfer.cli.generate import DeviceKeys, Dtype
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import SettingError


@bench_app.command("balance")
def balance_command(
    shape: Annotated[
        str, typer.Option(help="KV heads x queries per head x head dimension.", metavar="HxGxD")
    ] = "8x4x128",
    layers: Annotated[int, typer.Option(help="Layers with keys of their own.")] = 1,
    dtype: Annotated[Dtype, typer.Option(help="Number format of the KV cache.")] = Dtype.float16,
    tokens: Annotated[int, typer.Option(help="Context length.")] = 65536,
    steps: Annotated[int, typer.Option(help="Decoded tokens measured at every split, going down and going up.")] = 16,
    alpha: Annotated[float, typer.Option(help="Share of the tokens attended per step.")] = 0.005,
    hot_bytes: Annotated[str, typer.Option(help="As in generate; it bounds what the host can score.")] = "90%",
    device: Annotated[str, typer.Option(help="Who scores the cold pool, as in generate.")] = "software",
    device_keys: Annotated[DeviceKeys, typer.Option(help="Where a card's keys lie, as in generate.")] = DeviceKeys.auto,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "balance.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Sweep the host's share of the scoring on a device, and hold the formula's beside the best one."""
    if layers < 1 or tokens < 1024 or steps < 2 or not 0 < alpha <= 1:
        raise SettingError("bench balance needs a layer, 1024 tokens, 2 steps, and an alpha above 0 up to 1")
    store = StoreSettings(
        hot_bytes=Budget.parse(hot_bytes), device=device, device_keys=device_keys.value, cold_dir=cold_dir
    )
    geometry = shape_of(shape, dtype, layers)
    from hillinfer.bench import balance
    from hillinfer.csd.registry import check_devices

    check_devices(store)
    console = stderr()
    with console.status("starting") as status:
        result = balance.compare(
            store,
            geometry,
            alpha=alpha,
            tokens=tokens,
            steps=steps,
            on_progress=lambda doing: status.update(doing) if console.is_terminal else console.print(doing),
        )
    settings = {"shape": shape, "layers": layers, "dtype": dtype.value, "tokens": tokens, "steps": steps}
    result["settings"] = settings | {"alpha": alpha, "hot_bytes": hot_bytes, "device": device}
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    show_table(_table(result))
    for name, value in result["summary"].items():
        stdout().print(f"{name:26} {'-' if value is None else format(value, '.4g')}")


def _table(result: dict[str, Any]) -> Table:
    table = Table(
        title="{device}: {layers} layers of {shape}, {tokens} tokens, hot {hot_bytes}, α = {alpha:g}".format_map(
            result["settings"]
        ),
        caption=f"both paths are equally long where the host scores {percent(result['best_share'])}; by formula and "
        f"calibration that is {percent(result['formula_share'])}; followed while running: "
        f"{percent(result['followed']['share'])}",
    )
    for heading in ("the host scores", "host's path", "device's path", "step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in result["points"]:
        times = (f"{point[name] * 1e3:.2f} ms" for name in ("cpu", "csd", "step"))
        table.add_row(percent(point["share"]), *times)
    return table
