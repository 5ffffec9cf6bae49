"""The text a model reads: the built-in document, a person's own file, and both as a prompt in the chat template."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from hillinfer.errors import DocumentError

if TYPE_CHECKING:
    import torch

DEFAULT_DOCUMENT_TOKENS = 6500
# The default model answers it with the sentence that stands near the end, with the full cache and at α = 0.1 alike.
DEFAULT_QUESTION = "What is the default behavior for attribute access?"

# Stands for the user's turn while the chat template is rendered: no template does more to a turn than trim it.
_PLACEHOLDER = "\N{OBJECT REPLACEMENT CHARACTER}document-and-question\N{OBJECT REPLACEMENT CHARACTER}"


@dataclass(frozen=True)
class Prompt:
    """A prompt ready for the model.

    input_ids        int64 [1, N]: chat template, document and question
    document_tokens  tokens of the document in it, those cut out not counted
    cut_tokens       tokens of the document that were cut out of its middle
    """

    input_ids: torch.Tensor
    document_tokens: int
    cut_tokens: int


def default_document(tokenizer: Any, tokens: int = DEFAULT_DOCUMENT_TOKENS) -> str:
    """The first ``tokens`` tokens of the language reference that every CPython carries for ``help()``.

    Less the last paragraph, which the count would cut in two. ``DocumentError`` where a distribution has left that
    module out of its Python.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise DocumentError("this Python has no pydoc_data: name a document of your own with --prompt-file") from error
    # no tokenizer makes tokens of this text that hold ten characters on average: the rest need not be tokenised
    text = "\n\n".join(topics[name].strip() for name in sorted(topics))[: 10 * tokens]
    text = str(tokenizer.decode(plain_tokens(tokenizer, text)[:tokens], clean_up_tokenization_spaces=False))
    return text[: text.rfind("\n\n")]


def read_prompt_file(path: Path) -> str:
    """The text of a UTF-8 file, a byte order mark taken off; ``DocumentError`` for anything else."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise DocumentError(f"there is no file {path}: check the name") from error
    except IsADirectoryError as error:
        raise DocumentError(f"{path} is a folder: name one text file in it") from error
    except OSError as error:
        raise DocumentError(f"{path} cannot be read ({error.strerror})") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "ISO-8859-1"
        command = f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {quote(str(path.with_suffix('.utf8.txt')))}"
        raise DocumentError(
            f"{path} is not UTF-8: the byte {content[error.start]:#04x} at offset {error.start} does not belong there. "
            f"If it is {encoding} text, convert it: {command}"
        ) from error
    if not text.strip():
        raise DocumentError(f"{path} is empty: there is nothing to read in it")
    return text


def build_prompt(
    tokenizer: Any,
    document: str,
    question: str,
    context_limit: int,
    reserve: int,
    truncate: Literal["error", "middle"] = "error",
) -> Prompt:
    """Document, blank line and question as one turn of the user's, in the tokenizer's chat template if it has one.

    context_limit  tokens the model can hold, prompt and answer together
    reserve        tokens of the answer to leave room for
    truncate       what to do when it does not fit: ``DocumentError``, or cut tokens out of the document's middle

    Nothing in the texts becomes a control token: ``<|im_end|>`` in a document is read as those ten characters.
    """
    import torch

    if not document.strip() and not question.strip():
        raise DocumentError("the prompt is empty: name a document with --prompt-file or a question with --prompt")
    head, tail = frame(tokenizer)
    body = plain_tokens(tokenizer, document)
    asked = plain_tokens(tokenizer, "\n\n" + question if document and question else question)
    room = context_limit - reserve - len(head) - len(asked) - len(tail)
    cut = max(0, len(body) - room)
    if cut:
        sizes = (
            f"{len(head) + len(body) + len(asked) + len(tail)} tokens of prompt and {reserve} new ones do not fit into "
            f"the model's context of {context_limit}"
        )
        if room <= 0:
            raise DocumentError(f"{sizes}, even without the document: shorten the question or lower --max-new-tokens")
        if truncate == "error":
            raise DocumentError(
                f"{sizes}: cut {cut} tokens out of the document's middle with --truncate middle, or take a model with "
                "a longer context"
            )
        kept = (room + 1) // 2
        body = body[:kept] + body[kept + cut :]
    ids = head + body + asked + tail
    return Prompt(torch.tensor([ids], dtype=torch.int64), len(body), cut)


def frame(tokenizer: Any, chat: bool = True) -> tuple[list[int], list[int]]:
    """The tokens before and after the user's text: here, and only here, control tokens come from.

    The chat template around one turn of the user's; without ``chat``, or for a tokenizer that has no template, what
    starts a text, and nothing.
    """
    if not (chat and getattr(tokenizer, "chat_template", None)):
        probe = tokenizer("a", verbose=False).input_ids
        starts = tokenizer.bos_token_id is not None and probe[:1] == [tokenizer.bos_token_id]
        return ([tokenizer.bos_token_id] if starts else []), []
    turn = [{"role": "user", "content": _PLACEHOLDER}]
    parts = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True).split(_PLACEHOLDER)
    if len(parts) != 2:
        raise DocumentError("this model's chat template does not hold the user's text exactly once: take another model")
    head, tail = (list(tokenizer(part, add_special_tokens=False, verbose=False).input_ids) for part in parts)
    return head, tail


def plain_tokens(tokenizer: Any, text: str) -> list[int]:
    """Tokens of plain text: what looks like a control token is spelled out."""
    if not text:
        return []
    ids = tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False).input_ids
    return list(ids)
