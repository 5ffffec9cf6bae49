"""From what a person writes after ``--model`` to a model and its tokenizer in memory."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hillinfer.errors import ModelError
from hillinfer.models import convert, sealed
from hillinfer.models.catalogue import DEFAULT_MODEL, catalogue, models_home, obtain
from hillinfer.models.quiet import quiet

if TYPE_CHECKING:
    import torch

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_HUB_TIMEOUT_S = 10


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model in eval mode with its tokenizer, and for people its name and where it came from."""

    model: Any
    tokenizer: Any
    name: str
    source: str


def load(spec: str | None = None, dtype: torch.dtype | None = None) -> LoadedModel:
    """Load the default model (None), one of the catalogue, a model folder, a ``.gguf`` file or a Hugging Face id.

    On the CPU, in ``dtype`` (None: float32). A GGUF file is converted once, into the cache. The network is used only
    for what is not on this machine. ``ModelError`` says what is wrong and what to do.
    """
    spec = DEFAULT_MODEL if spec is None else spec
    entry = next((entry for entry in catalogue() if spec in (entry.name, entry.alias)), None)
    if entry is not None:
        return LoadedModel(*_read_sealed(obtain(entry), dtype), entry.name, entry.source)
    path = Path(spec).expanduser()
    try:
        if path.is_dir():
            return LoadedModel(*_read_folder(path, dtype), path.resolve().name, str(path))
        if path.is_file():
            return LoadedModel(*_read_sealed(_convert_once(path), dtype), path.stem, str(path))
    except OSError as error:
        raise ModelError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    if not _HUB_ID.fullmatch(spec) or spec.endswith((".gguf", ".safetensors", ".bin")):
        raise ModelError(f"there is no file or folder {spec}. {_nearest(spec)}")
    return LoadedModel(*_read_hub(spec, dtype), spec, f"Hugging Face hub, {spec}")


def _convert_once(path: Path) -> Path:
    """The converted folder of a GGUF file: named by its contents, so that a new file under an old name counts."""
    if not convert.is_gguf(path):
        raise ModelError(f"{path} is not a GGUF file: name a .gguf file, or the folder that a model's files lie in")
    folder = models_home() / f"gguf-{sealed.sha256(path)[:16]}"
    if not sealed.is_sealed(folder):
        sealed.build(folder, lambda partial: convert.gguf_to_folder(path, partial), source=str(path.resolve()))
    return folder


def _read_sealed(folder: Path, dtype: torch.dtype | None) -> tuple[Any, Any]:
    sealed.verify(folder)
    return _read_folder(folder, dtype)


def _read_folder(folder: Path, dtype: torch.dtype | None) -> tuple[Any, Any]:
    if not (folder / "config.json").is_file():
        files = sorted(file.name for file in folder.glob("*.gguf"))
        hint = f"name the file in it: {folder / files[0]}" if files else "name the folder that holds it"
        raise ModelError(f"{folder} is not a model folder, it has no config.json: {hint}")
    try:
        return _read(str(folder), dtype, local=True)
    except ModelError:
        raise
    except Exception as error:  # the readers raise whatever a wrong byte happens to cause
        raise ModelError(f"the model in {folder} cannot be loaded, fetch it again: {_first_line(error)}") from error


def _read_hub(name: str, dtype: torch.dtype | None) -> tuple[Any, Any]:
    try:
        try:
            return _read(name, dtype, local=True)
        except OSError:  # not in the hub's cache on this machine, or not all of it
            _check_hub(name)
            return _read(name, dtype, local=False)
    except ModelError:
        raise
    except Exception as error:
        if any(type(cause).__name__ == "GatedRepoError" for cause in _chain(error)):
            raise ModelError(f"{name} is gated: accept its terms on its page, then run `hf auth login`") from error
        raise ModelError(f"{name} of the Hugging Face hub cannot be loaded: {_first_line(error)}") from error


def _check_hub(name: str) -> None:
    """One request: transformers would try for half a minute where there is no network. ``ModelError`` says why not."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        HfApi().model_info(name, timeout=_HUB_TIMEOUT_S)
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"there is no model {name}: not in the catalogue, no file or folder here, not on the Hugging Face hub. "
            f"{_nearest(name)}"
        ) from error
    except Exception as error:  # the hub client's own errors and those of whichever HTTP library it is built on
        raise ModelError(
            f"there is no model {name} on this machine: not in the catalogue, no file or folder, and the Hugging Face "
            f"hub cannot be reached to look there ({_first_line(error)}): is there a network? {_nearest(name)}"
        ) from error


def _read(where: str, dtype: torch.dtype | None, *, local: bool) -> tuple[Any, Any]:
    """Model and tokenizer; ``ModelError`` for what transformers would accept but is no use, else its own errors."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    reader: Any = AutoModelForCausalLM  # its annotations do not know output_loading_info
    # never the question whether to run a model's own code: it would wait for an answer, and here the answer is no
    common: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
    with quiet():
        try:
            config = AutoConfig.from_pretrained(where, **common)
        except ValueError as error:
            if "trust_remote_code" not in str(error):
                raise
            raise ModelError(f"{where} runs code of its own: name a model that transformers itself knows") from error
        _check_causal(where, config)
        model, loading = reader.from_pretrained(
            where, config=config, dtype=dtype or torch.float32, output_loading_info=True, **common
        )
        missing = sorted(loading["missing_keys"])
        if missing:  # transformers would go on with random ones
            raise ModelError(f"{len(missing)} weights of {where} are missing, such as {missing[0]}: fetch them again")
        tokenizer = AutoTokenizer.from_pretrained(where, **common)
    return model.eval(), tokenizer


def _check_causal(where: str, config: Any) -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    architectures = list(getattr(config, "architectures", None) or [])
    # A BERT has a causal class too, but these weights are only as good as the class they were trained as.
    trained = not architectures or any(name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values() for name in architectures)
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING or not trained:
        kind = ", ".join(architectures) or config.model_type
        raise ModelError(
            f"{where} is not a causal language model but {kind}: name one that generates text, such as {DEFAULT_MODEL}"
        )


def _nearest(spec: str) -> str:
    """Which name may have been meant: of the catalogue, or of the files beside the one that does not exist."""
    names = [entry.name for entry in catalogue()]
    parent = Path(spec).expanduser().parent
    if parent.is_dir():
        names += [str(parent / path.name) for path in parent.iterdir() if path.is_dir() or path.suffix == ".gguf"]
    close = difflib.get_close_matches(spec, names, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"The catalogue has: {', '.join(entry.name for entry in catalogue())}"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
