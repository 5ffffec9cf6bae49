"""A model of lm-evaluation-harness whose cache follows a policy: registered as "hillinfer" when this is imported."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import handle_stop_sequences, normalize_gen_kwargs, postprocess_generated_text
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from hillinfer.errors import SettingError
from hillinfer.evaluation.answering import end_tokens, step, teacher_forced
from hillinfer.evaluation.contender import FULL, parse_contenders
from hillinfer.evaluation.harness.encoding import encode, encode_pair, prefix_token
from hillinfer.evaluation.reading import Reading

_NEW_TOKENS = 256
Request = tuple[tuple[str, str], list[int], list[int]]


@register_model("hillinfer")
class HillInferLM(TemplateLM):  # type: ignore[misc]  # the harness is not typed
    """Contexts are read exactly and once; continuations are decoded token by token with the policy's cache.

    model        as in ``hillinfer generate``: a name, a folder, a file; None: the default model; or a loaded one
    tokenizer    of a loaded model
    policy       by its registered name; "full": transformers' own cache
    budget       a share of the cached tokens, "20%" or 0.2
    cold_dir     folder of the cold files
    max_length   tokens of context and continuation; None: as many as the model has positions for
    settings     of the policy, by name; batch_size, max_batch_size and device are the harness's and change nothing

    ``--model hillinfer --model_args policy=quest,budget=20%,model=smollm2``
    """

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        policy: str = "hillinfer",
        budget: str | float = "10%",
        cold_dir: str | Path | None = None,
        max_length: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__()
        for ignored in ("batch_size", "max_batch_size", "device"):
            settings.pop(ignored, None)
        written = policy if policy == FULL else f"{policy}@{budget}"
        self._contender = parse_contenders(written, {policy: settings})[-1]
        if not self._contender.full:
            self._contender.create()  # a wrong setting is told before a model is loaded
        if model is None or isinstance(model, str):
            from hillinfer.models import load

            loaded = load(model)
            model, tokenizer = loaded.model, loaded.tokenizer
        if tokenizer is None:
            raise SettingError("a loaded model needs its tokenizer: HillInferLM(model, tokenizer)")
        self._model, self.tokenizer = model, tokenizer
        self._device = model.device
        self.max_length = max_length or int(model.config.get_text_config().max_position_embeddings)
        self._reading = Reading(model, Path(cold_dir) if cold_dir is not None else None)

    @property
    def eot_token_id(self) -> int:
        """The token that ends a text."""
        return int(self.tokenizer.eos_token_id)

    @property
    def prefix_token_id(self) -> int:
        """What an empty context is."""
        return prefix_token(self.tokenizer)

    @property
    def tokenizer_name(self) -> str:
        """For the harness's cache of requests."""
        return str(self.tokenizer.name_or_path).replace("/", "__")

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """Tokens of a text."""
        if add_special_tokens is None:
            return encode(self.tokenizer, string)
        return list(self.tokenizer.encode(string, add_special_tokens=add_special_tokens))

    def _encode_pair(self, context: str, continuation: str) -> tuple[list[int], list[int]]:
        return encode_pair(self.tokenizer, context, continuation)

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """Turns as the model's text."""
        text = self.tokenizer.apply_chat_template(
            chat_history,
            tokenize=False,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=not add_generation_prompt,
        )
        return str(text)

    def _loglikelihood_tokens(self, requests: Sequence[Request], **_: Any) -> list[tuple[float, bool]]:
        """Requests of one context after each other: it is read once."""
        fitted = [self._fitted(context, continuation) for _, context, continuation in requests]
        order = sorted(range(len(fitted)), key=lambda number: fitted[number][0])
        found: list[tuple[float, bool]] = [(0.0, True)] * len(fitted)
        for context, numbers in groupby(order, key=lambda number: fitted[number][0]):
            self._reading.read(torch.tensor(context[:-1], dtype=torch.int64))
            for number in numbers:
                found[number] = self._likelihood(context, fitted[number][1])
                self.cache_hook.add_partial("loglikelihood", requests[number][0], found[number])
        return found

    def _fitted(self, context: list[int], continuation: list[int]) -> tuple[list[int], list[int]]:
        """Without the context's beginning where both are too long; the last token is told, and not read."""
        room = self.max_length + 1 - len(continuation)
        if room < 1:
            raise SettingError(
                f"a continuation of {len(continuation)} tokens is more than the model's {self.max_length}"
            )
        return context[-room:], continuation

    def _likelihood(self, context: list[int], continuation: list[int]) -> tuple[float, bool]:
        if not continuation:
            return 0.0, True
        with self._reading.open(self._contender, len(context) + len(continuation)) as cache:
            logprobs = teacher_forced(self._model, cache, context[-1], continuation)
        tokens = torch.tensor(continuation)
        return float(logprobs.gather(1, tokens[:, None]).sum()), bool((logprobs.argmax(-1) == tokens).all())

    def loglikelihood_rolling(self, requests: Sequence[Any], **_: Any) -> list[float]:
        """Of whole texts: every token is decoded once, in windows of the model's length."""
        found = []
        for (text,) in (request.args for request in requests):
            windows = get_rolling_token_windows(self.tok_encode(text), self.prefix_token_id, self.max_length, 1)
            parts = [(("", text), *make_disjoint_window(window)) for window in windows]
            found.append(sum(likely for likely, _ in self._loglikelihood_tokens(parts)))
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), found[-1])
        return found

    def generate_until(self, requests: Sequence[Any], **_: Any) -> list[str]:
        """The likeliest text after each context, up to a stop sequence; sampling is refused."""
        return [self._generate(*request.args) for request in requests]

    def _generate(self, context: str, asked: dict[str, Any]) -> str:
        settings = normalize_gen_kwargs(asked, _NEW_TOKENS)
        if settings.get("do_sample"):
            raise SettingError("HillInferLM says the likeliest tokens only: ask for do_sample=False")
        most = int(settings["max_gen_toks"])
        end = self.tokenizer.decode([self.eot_token_id])
        until = handle_stop_sequences(settings.get("until"), eos=end)
        if most >= self.max_length:
            raise SettingError(f"{most} new tokens are no less than the model's {self.max_length}: lower max_gen_toks")
        tokens = self.tok_encode(context)[most - self.max_length :] or [self.prefix_token_id]
        self._reading.read(torch.tensor(tokens[:-1], dtype=torch.int64))
        said: list[int] = []
        text, ends = partial(self.tokenizer.decode, skip_special_tokens=True), end_tokens(self._model)
        with self._reading.open(self._contender, len(tokens) + most) as cache:
            token = tokens[-1]
            while len(said) < most and not any(stop in text(said) for stop in until):
                token = int(step(self._model, cache, token).argmax())
                if token in ends or token == self.eot_token_id:
                    break
                said.append(token)
        told = str(postprocess_generated_text(text(said), until, None))
        self.cache_hook.add_partial("generate_until", (context, asked), told)
        return told

    def close(self) -> None:
        """Forget the last context."""
        self._reading.close()
