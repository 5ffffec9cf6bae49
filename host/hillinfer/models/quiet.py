"""transformers and the hub client without their progress bars and chatter, for as long as a block runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any


@contextmanager
def quiet() -> Iterator[None]:
    """Silence both libraries, and set them back as they were: a person's own program keeps its settings."""
    hub: Any = import_module("huggingface_hub.utils")
    transformers: Any = import_module("transformers.utils.logging")

    levels = transformers.get_verbosity(), hub.logging.get_verbosity()
    transformers_bars = transformers.is_progress_bar_enabled()
    hub_bars = not hub.are_progress_bars_disabled()
    transformers.set_verbosity_error()
    hub.logging.set_verbosity_error()
    transformers.disable_progress_bar()  # the hub's too
    try:
        yield
    finally:
        transformers.set_verbosity(levels[0])
        hub.logging.set_verbosity(levels[1])
        if transformers_bars:
            transformers.enable_progress_bar()  # the hub's too
        (hub.enable_progress_bars if hub_bars else hub.disable_progress_bars)()
