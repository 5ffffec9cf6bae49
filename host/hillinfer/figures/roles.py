"""A picture of a profile: heads × layers, coloured by role."""

from __future__ import annotations

from pathlib import Path

from hillinfer.errors import ProfileError, SettingError
from hillinfer.profiling.profile import HeadProfile
from hillinfer.profiling.roles import Role

FORMATS = (".svg", ".png", ".pdf")
COLOURS = {Role.anchor: "#4477aa", Role.volatile: "#ee6677", Role.pivot: "#ccbb44", Role.satellite: "#bbccdd"}
"""Tell apart in greys too, and for the colour-blind (Paul Tol's palettes)."""


def check_picture(path: Path) -> None:
    """SettingError for a file whose ending names no picture format, or without the package that draws."""
    if path.suffix.lower() not in FORMATS:
        raise SettingError(f"{path} is no picture's name: it ends in {', '.join(FORMATS)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingError("a picture needs matplotlib: pip install 'hillinfer[figures]'") from None


def draw(profile: HeadProfile, path: Path) -> None:
    """Write the picture, in the format that the file's ending names."""
    check_picture(path)
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure  # without pyplot: no window system, no global state
    from matplotlib.patches import Patch

    roles = list(Role)
    numbers = [[roles.index(role) for role in layer.roles] for layer in profile.layers]
    layers, heads = len(numbers), len(numbers[0])
    figure = Figure(figsize=(max(4.5, 0.28 * heads + 2.4), max(2.5, 0.22 * layers + 1.1)), layout="constrained")
    axes = figure.subplots()
    axes.pcolormesh(
        numbers,
        cmap=ListedColormap([COLOURS[role] for role in roles]),
        vmin=-0.5,
        vmax=len(roles) - 0.5,
        edgecolors="white",
        linewidth=1,
    )
    axes.set_xticks([head + 0.5 for head in range(heads)], [str(head) for head in range(heads)])
    marked = range(0, layers, 1 if layers <= 16 else 4)
    axes.set_yticks([layer + 0.5 for layer in marked], [str(profile.model.layers[layer]) for layer in marked])
    axes.invert_yaxis()
    axes.set_xlabel("KV head")
    axes.set_ylabel("layer")
    axes.set_title(profile.model.name, fontsize="medium")
    counts = profile.counts
    legend = [Patch(color=COLOURS[role], label=f"{role.value} ({counts[role.value]})") for role in roles]
    figure.legend(handles=legend, loc="outside right upper", frameon=False)
    try:
        figure.savefig(path)
    except OSError as error:
        raise ProfileError(f"the picture cannot be written to {path} ({error.strerror})") from error
