"""Where keys and values may live: the byte budgets of the tiers and the cold folder."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from hillinfer.csd.names import parse_devices
from hillinfer.errors import SettingError, nearest

_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {f"{unit}b": factor for unit, factor in _UNITS.items() if unit in "kmgt" and unit}
_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_UNITS |= {f"{unit}b": factor for unit, factor in _UNITS.items() if unit.endswith("i")}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([a-z]*)\s*", re.IGNORECASE)
_SHARE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*%\s*")


def parse_size(text: str) -> int | None:
    """Bytes of ``"512MiB"``, ``"1.5GB"`` or ``"1000000"``; None for what is no size."""
    match = _AMOUNT.fullmatch(text)
    factor = _UNITS.get(match.group(2).lower()) if match else None
    return None if match is None or factor is None else int(float(match.group(1)) * factor)


@dataclass(frozen=True)
class Budget:
    """A byte budget: a fixed number of bytes, or a share of the whole KV cache (which grows with the context).

    Exactly one of the two is set. ``Budget.parse`` reads what people write: ``"20%"``, ``"512MiB"``, ``1 << 30``.
    """

    nbytes: int | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if (self.nbytes is None) == (self.share is None):
            raise SettingError("a budget is either a number of bytes or a share of the KV cache, not both")

    @classmethod
    def parse(cls, text: Budget | str | int) -> Budget:
        """Read ``"20%"`` (share of the KV), ``"512MiB"``, ``"1.5GB"`` or a plain number of bytes."""
        if isinstance(text, Budget):
            return text
        if isinstance(text, float):
            raise SettingError(f"cannot read the number {text!r} as a size: a share of the KV is written '20%'")
        if match := _SHARE.fullmatch(str(text)):
            return cls(share=float(match.group(1)) / 100)
        nbytes = parse_size(str(text))
        if nbytes is None:
            raise SettingError(f"cannot read {text!r} as a size: write bytes (512MiB, 2GB, 1000000) or a share (20%)")
        return cls(nbytes=nbytes)

    def resolve(self, whole: int) -> int:
        """Bytes this budget allows when the whole KV cache has ``whole`` bytes."""
        if self.nbytes is not None:
            return self.nbytes
        assert self.share is not None
        return int(self.share * whole)

    def __str__(self) -> str:
        return f"{self.share:.4%}".replace(".0000%", "%") if self.share is not None else f"{self.nbytes} bytes"


def cache_home() -> Path:
    """The user's cache folder of this project (``$HILLINFER_CACHE``, else ``$XDG_CACHE_HOME/hillinfer``)."""
    own = os.environ.get("HILLINFER_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hillinfer"


def default_cold_dir() -> Path:
    """Where cold files go unless told otherwise: the cache folder, which is on a disk where /tmp may be memory."""
    return cache_home() / "cold"


DEVICE_KEYS = ("auto", "resident", "stream")
"""Where a device that runs the kernel has its scoring copy: in its memory, on its drive, or in memory if it fits."""

DEVICE_SPLITS = ("tokens", "layer")
"""How several cards share the keys: each scores a part of every query, or whole layers."""

SCORING_COPIES = ("auto", "int8", "int4", "projected", "projected/2", "projected/4", "projected/8", "stream")
"""What is scanned in place of the keys, the finest first: INT8; INT4; INT4 on a half, a quarter or an eighth of the
axes; no copy, the keys themselves read for every query. "auto": the finest that fits its budget, INT8 without one;
"projected": the same of those, a quarter without a budget."""

ON_DEVICE_ERROR = ("fail", "fallback")
"""What to do when a device fails: stop, or go on with the software device, which gives the same scores."""

PLACEMENTS = ("history", "last-use")
"""What keeps a row in the hot pool: being recent or often selected, or only that it was used lately (for studies)."""

MOST_THREADS = 1024
"""More than any machine has cores for; a mistyped number must not start a hundred thousand of them."""

BALANCE = ("auto", "off")
"""Who scores how much: as measured (hillinfer calibrate), or the host what is pinned. A number is β = host / device."""


def parse_balance(value: str | float) -> str | float:
    """``"auto"``, ``"off"``, or β as a number from 0 on; SettingError for anything else."""
    if value in BALANCE:
        return value
    try:
        beta = float(value)
    except ValueError:
        beta = -1.0
    if not 0 <= beta < float("inf"):
        raise SettingError(
            f"balance {value!r} is neither auto nor off nor a number: write 0.5 for half as much on the host as on the "
            "device"
        )
    return beta


@dataclass(frozen=True)
class StoreSettings:
    """How much each tier may hold, and where the cold pool lies.

    hot_bytes      DRAM for the hot pool of all layers and sequences together, its scoring copy included.
    device_bytes   memory of the compute device for newly generated tokens, a number of bytes; None: 128 tokens per
                   layer and sequence.
    cold_dir       folder of the cold files; None: ``default_cold_dir()``, created when missing.
    device         the computational storage device that owns the cold pool, by its name (csd/names.py); several with
                   commas share it.
    xclbin         the kernel's image for xrt and pynq devices; None: the one in bitstreams/, if there is one.
    device_keys    one of ``DEVICE_KEYS``; the software device takes "auto" as "resident", and has no copy with
                   "stream".
    device_split   one of ``DEVICE_SPLITS``; unused with one card.
    on_device_error  one of ``ON_DEVICE_ERROR``; unused by the software device.
    placement      one of ``PLACEMENTS``
    balance        how the scoring is split between host and device: one of ``BALANCE``, or β = host / device. "auto"
                   goes by this machine's calibration, where there is one, and by what is measured while running.
    lookahead      layers ahead of the one at work for which cold rows start to be read, by a foretold query: 0 or 1.
                   What is selected, and so the output, is the same. For policies that select by scores.
    threads        of the CPU, that share a layer's scoring and attention; the caller's is one of them. Where the
                   system gives no more threads, fewer do it.
    scoring_copy   what of the keys is scanned, one of ``SCORING_COPIES``.
    scoring_bytes  what the scoring copies of all layers and sequences together may take where the device keeps them
                   (memory of this machine for the software device), besides ``hot_bytes``; None: what they need.
    trace          record what ran when (``HillInferCache.trace``); costs a little time per step.
    """

    hot_bytes: Budget = field(default_factory=lambda: Budget(share=0.2))
    device_bytes: Budget | None = None
    cold_dir: Path | None = None
    device: str = "software"
    xclbin: Path | None = None
    device_keys: str = "auto"
    device_split: str = "tokens"
    on_device_error: str = "fail"
    placement: str = "history"
    balance: str | float = "auto"
    lookahead: int = 0
    threads: int = 1
    scoring_copy: str = "auto"
    scoring_bytes: Budget | None = None
    trace: bool = False

    def __post_init__(self) -> None:
        names = parse_devices(self.device)
        if self.xclbin is not None and not any(name.card for name in names):
            raise SettingError(f"an xclbin is for a card, and {self.device} is none: use xrt:0, or leave xclbin out")
        parse_balance(self.balance)
        if not 1 <= self.threads <= MOST_THREADS:
            raise SettingError(f"threads is {self.threads}: a step takes at least 1, and at most {MOST_THREADS:,}")
        if self.lookahead not in (0, 1):
            raise SettingError(f"lookahead is {self.lookahead}: 1 reads ahead for the next layer, 0 does not")
        choices = {"device_keys": DEVICE_KEYS, "device_split": DEVICE_SPLITS, "on_device_error": ON_DEVICE_ERROR}
        choices["placement"] = PLACEMENTS
        choices |= {"scoring_copy": SCORING_COPIES}
        for setting, known in choices.items():
            word: str = getattr(self, setting)
            if word not in known:
                raise SettingError(f"unknown {setting} {word!r}{nearest(word, known)}")
        if self.scoring_bytes is not None and (self.scoring_bytes.nbytes or self.scoring_bytes.share or 0) < 0:
            raise SettingError("scoring_bytes must not be negative: 0 keeps no copy, keys are then streamed")
        for name in ("hot_bytes", "device_bytes"):
            budget: Budget | None = getattr(self, name)
            if budget is not None and (budget.nbytes or budget.share or 0) <= 0:
                raise SettingError(f"{name} must be positive: the hot pool holds at least the tokens in flight")
        if self.device_bytes is not None and self.device_bytes.nbytes is None:
            raise SettingError("device_bytes is a number of bytes (512MiB), not a share: the newest tokens stay few")
