"""``hillinfer calibrate``: how fast this machine is at each side's work, for the split between host and device."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from hillinfer.cli.bench import show_table
from hillinfer.cli.console import complain, stderr, stdout, write_json
from hillinfer.cli.generate import DeviceKeys, Dtype
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import folder
from hillinfer.config import StoreSettings
from hillinfer.errors import CalibrationError, SettingError

if TYPE_CHECKING:
    from hillinfer.calibration.file import Calibration
    from hillinfer.calibration.measure import Measured
    from hillinfer.kv.geometry import Geometry

NOT_KEPT = 1
"""Exit code when the machine was too busy to trust what was measured: the command itself did what it should."""

_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})x(\d{1,4})")
_MEANING = {
    "f_c": "the host scores",
    "f_s": "the device scores",
    "B_c": "rows of the hot pool are attended",
    "B_s": "rows of the cold pool are read",
}


def calibrate_command(
    model: Annotated[
        str | None, typer.Option(help="Whose shape of keys to measure with, as in generate.", show_default="as there")
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(
            help="That shape itself, no model needed: KV heads x queries per head x head dimension.",
            metavar="HxGxD",
            show_default="the model's",
        ),
    ] = None,
    dtype: Annotated[Dtype, typer.Option(help="Number format of the KV cache, as in generate.")] = Dtype.float32,
    device: Annotated[
        str, typer.Option(help="Who scores the cold pool, as in generate: software, native, rtl, xrt:0, pynq:0.")
    ] = "software",
    device_keys: Annotated[DeviceKeys, typer.Option(help="Where a card's keys shall lie, as in generate.")] = (
        DeviceKeys.auto
    ),
    xclbin: Annotated[
        Path | None, typer.Option(help="The card's image, as in generate.", show_default="the one in bitstreams")
    ] = None,
    cold_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the cold pool, as in generate.", show_default="in the user's cache", callback=folder
        ),
    ] = None,
    cuda: Annotated[bool, typer.Option("--cuda", help="The model runs on a GPU: measure the copy to it.")] = False,
    alpha: Annotated[float, typer.Option(help="Share of the tokens attended per step, as in generate.")] = 0.1,
    seconds: Annotated[float, typer.Option(help="How long to repeat each of the four measurements.")] = 2.5,
    force: Annotated[bool, typer.Option("--force", help="Keep the figures of a busy machine, too.")] = False,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Measure how fast host and device score and how fast rows arrive; generate then balances the two by it.

    Takes about 15 seconds, and wants an idle machine. The figures are kept in the user's cache folder and hold for this
    machine, device, drive and shape. Exit code 1 when the machine was too busy: what was kept before stays.
    """
    if not 0 < alpha <= 1 or not 0 < seconds <= 600:
        raise SettingError("--alpha is a share above 0 up to 1, and --seconds a time above 0 up to 600")
    store = StoreSettings(cold_dir=cold_dir, device=device, xclbin=xclbin, device_keys=device_keys.value)
    import torch

    from hillinfer.calibration import file
    from hillinfer.calibration.fingerprint import fingerprint
    from hillinfer.calibration.measure import measure
    from hillinfer.csd.registry import check_devices

    if cuda and not torch.cuda.is_available():
        raise SettingError("--cuda was given, and torch finds no GPU here: leave it out")
    check_devices(store)
    geometry = _geometry(model, shape, dtype)
    compute = torch.device("cuda" if cuda else "cpu")
    console = stderr()
    with console.status("filling the device") as status:

        def show(name: str) -> None:
            status.update(f"measuring how fast {_MEANING[name]}" + (", and the device" if name == "f_c" else ""))

        measured = measure(store, geometry, compute, alpha=alpha, seconds=seconds, on_step=show)
    where = fingerprint(store, geometry, compute)
    try:
        before = file.find(where)
    except CalibrationError:
        before = None  # it is about to be replaced
    calibration = file.Calibration.now(where, measured.figures, alpha)
    busy = measured.busy()
    kept = force or not busy
    path = file.write(calibration) if kept else file.path_of(where)
    if as_json:
        write_json(_as_dict(calibration, measured, busy, path if kept else None))
    else:
        show_table(_table(calibration, before))
    if not kept:
        complain(
            f"not kept, the machine was busy: {', '.join(busy)}. "
            + ("The figures of before stay in use. " if before is not None else "")
            + "Try again when it is idle, or keep these with --force"
        )
        raise typer.Exit(NOT_KEPT)
    if not as_json:
        stdout().print(Text(f"kept in {path}"), soft_wrap=True)


def _geometry(model: str | None, shape: str | None, dtype: Dtype) -> Geometry:
    if shape is not None:
        if model is not None:
            raise SettingError("give --model, or --shape: not both")
        return shape_of(shape, dtype)
    import torch

    from hillinfer.integrations.transformers import geometry_of
    from hillinfer.models import load

    with stderr().status("loading the model"):
        return geometry_of(load(model, getattr(torch, dtype.value)).model, 1)


def shape_of(shape: str, dtype: Dtype, layers: int = 1) -> Geometry:
    """The geometry of ``8x4x128``: KV heads, queries per head, head dimension; SettingError for what is none."""
    match = _SHAPE.fullmatch(shape)
    if match is None or not all(map(int, match.groups())):
        raise SettingError(f"--shape {shape!r} is no shape: write KV heads x queries per head x dimension, 8x4x128")
    import torch

    from hillinfer.kv.geometry import Geometry

    heads, group, dim = map(int, match.groups())
    return Geometry(layers, heads, group, dim, getattr(torch, dtype.value))


def _as_dict(calibration: Calibration, measured: Measured, busy: list[str], path: Path | None) -> dict[str, Any]:
    figures = {name: figure.model_dump() | {"spread": figure.spread} for name, figure in measured.figures.items()}
    return {
        "kept": path is not None,
        "file": path,
        "busy": busy,
        "load_per_core": measured.load,
        "figures": figures,
        "where": calibration.where.model_dump(),
    } | _betas(calibration)


def _betas(calibration: Calibration) -> dict[str, Any]:
    from hillinfer.calibration.rates import Shares, beta_p2p, beta_two_hop

    alpha = Shares.even(calibration.alpha)
    return {
        "alpha": calibration.alpha,
        "beta_p2p": beta_p2p(calibration.rates, alpha),
        "beta_two_hop": beta_two_hop(calibration.rates, alpha),
    }


def _table(calibration: Calibration, before: Calibration | None) -> Table:
    where, betas = calibration.where, _betas(calibration)
    table = Table(
        title=f"{where.device}, {where.shape}, {where.key_format} keys, on {where.processor}",
        caption="speeds in rows of KV, whatever is scanned; β: the host's bytes per byte of the device when both end "
        f"together at α = {calibration.alpha:g}, with every selected row where its key is scored",
        title_justify="left",
        caption_justify="left",
    )
    for heading in ("", "", "GB/s", "spread", "repeats", "before"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, figure in calibration.figures:
        last = None if before is None else getattr(before.figures, name).median / 1e9
        table.add_row(
            name,
            _MEANING[name],
            f"{figure.median / 1e9:.3g}",
            f"{figure.spread:.0%}",
            str(figure.repeats),
            "–" if last is None else f"{last:.3g}",
        )
    table.add_section()
    table.add_row(
        "β", "rows from the drive straight to where they are attended", f"{betas['beta_p2p']:.3g}", "", "", ""
    )
    ways = {"beta_p2p": "straight to where they are attended", "beta_two_hop": "through the host's memory"}
    for name, way in ways.items():
        table.add_row("β", f"rows from the drive {way}", f"{betas[name]:.3g}", "", "", "")
    return table
