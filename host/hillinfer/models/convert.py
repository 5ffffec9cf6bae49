"""GGUF to safetensors, once: transformers reads a GGUF in half a minute, the converted folder in a second."""

from __future__ import annotations

import contextlib
import io
import logging
from pathlib import Path
from typing import Any

from hillinfer.errors import ModelError
from hillinfer.models.quiet import quiet

logger = logging.getLogger(__name__)


def is_gguf(path: Path) -> bool:
    """Whether the file starts as every GGUF file does."""
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def gguf_to_folder(path: Path, folder: Path) -> None:
    """Write the model of a GGUF file into ``folder`` as float32 safetensors, with its tokenizer.

    ``ModelError`` when the file is broken or its architecture is unknown to transformers.
    """
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    reader: Any = AutoModelForCausalLM  # its annotations do not know output_loading_info
    logger.info("converting %s to safetensors, once (under a minute for a small model)", path.name)
    where, file = str(path.parent), path.name
    # the progress bar of this one step heeds no setting: only stderr can be turned away
    with quiet(), contextlib.redirect_stderr(io.StringIO()):
        try:
            tokenizer = AutoTokenizer.from_pretrained(where, gguf_file=file, local_files_only=True)
            model, loading = reader.from_pretrained(
                where, gguf_file=file, local_files_only=True, dtype=torch.float32, output_loading_info=True
            )
        except ImportError as error:
            raise ModelError(
                f"transformers {transformers.__version__} lacks something to read GGUF files: {_first_line(error)}. "
                "Install that, or the newest transformers"
            ) from error
        except Exception as error:  # the reader raises whatever a wrong byte happens to cause
            raise ModelError(
                f"{path} cannot be read as a GGUF model ({_first_line(error)}): it is cut short, damaged, or of an "
                "architecture that transformers does not convert; fetch it again, or name a model folder"
            ) from error
        if loading["missing_keys"]:
            raise ModelError(
                f"{path} lacks weights, such as {min(loading['missing_keys'])}: is it one part of several?"
            )
        # save_pretrained refuses a model that still calls itself quantized, although its weights are dequantized by now
        model.hf_quantizer = None
        model.is_quantized = False
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
