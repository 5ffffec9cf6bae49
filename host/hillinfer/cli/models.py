"""``hillinfer models``: what ``--model`` knows by name."""

from __future__ import annotations

from rich.table import Table

from hillinfer.cli.console import human_count, stdout, write_json
from hillinfer.cli.options import AsJson, Debug

_SHAPE = ("parameters", "layers", "heads", "kv_heads", "head_dim", "context")
_FIELDS = ("name", "source", "license", *_SHAPE, "cached", "path")


def models_command(
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """List the models known by name: their source, licence and shape, and whether they are in the cache.

    Others work too: --model takes a Hugging Face id, a local directory or a .gguf file.
    """
    from hillinfer.models import catalogue

    entries = [{field: getattr(entry, field) for field in _FIELDS} for entry in catalogue()]
    if as_json:
        write_json(entries)
        return
    table = Table(caption="--model also takes a Hugging Face id, a local directory or a .gguf file")
    for heading in ("model", "params", "context", "cached"):
        table.add_column(heading, no_wrap=heading != "model")
    for entry in entries:
        shape = "{layers} layers, {heads} heads ({kv_heads} KV) of {head_dim}".format_map(entry)
        table.add_row(
            f"{entry['name']}\n[dim]{shape}\n{entry['source']}, {entry['license']}[/]",
            human_count(entry["parameters"]),
            f"{entry['context']:,}",
            "yes" if entry["cached"] else "no",
        )
    stdout().print(table)
