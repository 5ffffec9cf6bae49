"""The model class under the real library, held against plain torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("lm_eval")
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import get_model
from lm_eval.evaluator import evaluate
from lm_eval.models.huggingface import HFLM

from hillinfer.errors import SettingError
from hillinfer.evaluation.harness import tasks
from hillinfer.evaluation.harness.encoding import encode_pair
from hillinfer.evaluation.harness.model import HillInferLM
from tests.evaluation.harness.made_up import REQUESTS
from tests.tiny import BOS, tiny, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
VOCAB = len(TOKENIZER)
TEXT = "The ferry left at noon, and nobody on the pier had seen who was aboard. " * 4
CHOICES = [" It rained.", " A bell rang twice.", " No"]


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny(vocab_size=VOCAB)


@pytest.fixture
def language_model(model: Any) -> Iterator[Any]:
    made = []

    def make(policy: str, budget: float = 1.0, **settings: Any) -> HillInferLM:
        made.append(HillInferLM(model, TOKENIZER, policy, budget, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


def requests(kind: str, *arguments: tuple[Any, ...]) -> list[Instance]:
    return [Instance(kind, {}, each, number) for number, each in enumerate(arguments)]


def plain(model: Any, context: list[int], continuation: list[int]) -> tuple[float, bool]:
    """Plain torch: everything in one forward pass, no cache at all."""
    model.set_attn_implementation("eager")
    with torch.inference_mode():
        logits = model(torch.tensor([context + continuation])).logits[0, len(context) - 1 : -1].log_softmax(-1)
    told = torch.tensor(continuation)
    return float(logits.gather(1, told[:, None]).sum()), bool((logits.argmax(-1) == told).all())


@pytest.mark.parametrize("policy", ["full", "hillinfer", "quest", "h2o"])
def test_likelihoods_with_everything_attended_are_plain_torch(model: Any, language_model: Any, policy: str) -> None:
    asked = [(TEXT, choice) for choice in CHOICES] + [("Other:", " x"), (TEXT, CHOICES[0])]
    found = language_model(policy).loglikelihood(requests("loglikelihood", *asked))
    for pair, each in zip(asked, found, strict=True):
        likely, greedy = plain(model, *encode_pair(TOKENIZER, *pair))
        assert each[0] == pytest.approx(likely, abs=2e-3)
        assert each[1] == greedy


@pytest.mark.parametrize("policy", ["hillinfer", "streaming-llm", "snapkv"])
def test_a_budget_shows(language_model: Any, policy: str) -> None:
    asked = requests("loglikelihood", (TEXT * 4, CHOICES[1]))
    whole = language_model("full").loglikelihood(asked)[0][0]
    assert abs(language_model(policy, 0.05).loglikelihood(asked)[0][0] - whole) > 1e-3


def test_the_greedy_continuation_is_known(model: Any, language_model: Any) -> None:
    said = language_model("full").generate_until(requests("generate_until", (TEXT, {"max_gen_toks": 3, "until": []})))
    context = TOKENIZER.encode(TEXT)
    ids = list(context)
    for _ in range(3):
        with torch.inference_mode():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert said == [TOKENIZER.decode(ids[len(context) :], skip_special_tokens=True)]


def test_generation_ends_at_a_stop_sequence(language_model: Any) -> None:
    whole = language_model("full").generate_until(requests("generate_until", (TEXT, {"max_gen_toks": 8})))[0]
    for policy in ("full", "hillinfer"):
        stop = {"max_gen_toks": 8, "until": [whole[3]]}
        cut = language_model(policy).generate_until(requests("generate_until", (TEXT, stop)))[0]
        assert cut == whole.split(whole[3])[0]
    with pytest.raises(SettingError, match="likeliest tokens only"):
        language_model("full").generate_until(requests("generate_until", (TEXT, {"do_sample": True})))


@pytest.mark.parametrize("policy", ["full", "hillinfer"])
def test_rolling_is_the_whole_text_after_the_start_token(model: Any, language_model: Any, policy: str) -> None:
    text = TEXT[:60]
    found = language_model(policy).loglikelihood_rolling(requests("loglikelihood_rolling", (text,)))
    assert found[0] == pytest.approx(plain(model, [BOS], TOKENIZER.encode(text))[0], abs=2e-3)


def test_rolling_in_windows_tells_every_token_once(model: Any, language_model: Any) -> None:
    ids = TOKENIZER.encode(TEXT[:50])
    found = language_model("full", max_length=20).loglikelihood_rolling(requests("loglikelihood_rolling", (TEXT[:50],)))
    windows = [([BOS], ids[:20]), (ids[19:20], ids[20:40]), (ids[29:40], ids[40:50])]
    assert found[0] == pytest.approx(sum(plain(model, *window)[0] for window in windows), abs=2e-3)


def test_a_long_context_loses_its_beginning(model: Any, language_model: Any) -> None:
    found = language_model("full", max_length=40).loglikelihood(requests("loglikelihood", (TEXT, " No")))
    context, continuation = encode_pair(TOKENIZER, TEXT, " No")
    assert found[0][0] == pytest.approx(plain(model, context[-(41 - len(continuation)) :], continuation)[0], abs=2e-3)


@pytest.mark.parametrize("pair", [("a b", " c"), ("a b  ", "c"), ("<s>a", " b")])
def test_pairs_are_cut_as_the_harness_cuts_them(language_model: Any, pair: tuple[str, str]) -> None:
    assert encode_pair(TOKENIZER, *pair) == TemplateLM._encode_pair(language_model("full"), *pair)


def test_an_empty_context_is_the_start_token() -> None:
    assert encode_pair(TOKENIZER, "", "ab") == ([BOS], TOKENIZER.encode("ab"))
    assert encode_pair(TOKENIZER, "", "<s>ab") == ([BOS], TOKENIZER.encode("ab"))


def test_an_empty_context_is_gone_on_from(language_model: Any) -> None:
    asked = {"until": [], "max_gen_toks": 4}
    started, empty = language_model("full").generate_until(
        requests("generate_until", (TOKENIZER.bos_token, asked), ("", asked))
    )
    assert empty == started != ""


def test_the_harness_runs_every_kind_of_policy(model: Any, language_model: Any, data: Path) -> None:
    """Accuracies of the library's own evaluator, from plain torch."""
    loaded = {name: tasks.load(name, data) for name in REQUESTS}
    for task in loaded.values():
        task.set_config("num_fewshot", 0)
    expected = {}
    for name, (context, choices, gold) in REQUESTS.items():
        likely = [plain(model, *encode_pair(TOKENIZER, context, choice))[0] for choice in choices]
        expected[name] = float(likely.index(max(likely)) == gold)
    for policy in ("full", "hillinfer"):
        results = evaluate(language_model(policy), {"tasks": loaded, "groups": {}}, bootstrap_iters=0)
        assert {name: results["results"][name]["acc,none"] for name in REQUESTS} == expected


def test_the_full_cache_is_the_harnesss_own_model(model: Any, language_model: Any) -> None:
    model.set_attn_implementation("eager")
    theirs, ours = HFLM(pretrained=model, tokenizer=TOKENIZER, device="cpu"), language_model("full")
    said = [(TEXT, {"max_gen_toks": 5, "until": []}), ("A", {"max_gen_toks": 5, "until": ["e"]})]
    for kind, arguments in {
        "loglikelihood": [(TEXT, choice) for choice in CHOICES] + [("", " x"), ("A b ", "c")],
        "loglikelihood_rolling": [(TEXT,), ("A",)],
        "generate_until": said,
    }.items():
        expected = getattr(theirs, kind)(requests(kind, *arguments))
        for mine, each in zip(getattr(ours, kind)(requests(kind, *arguments)), expected, strict=True):
            assert mine == (each if isinstance(each, str) else pytest.approx(each, abs=2e-3))


def test_it_is_registered_and_takes_the_command_lines_arguments(model: Any) -> None:
    assert get_model("hillinfer") is HillInferLM
    arguments = {"model": model, "tokenizer": TOKENIZER, "policy": "snapkv", "budget": "20%", "window": 16}
    made = HillInferLM.create_from_arg_obj(arguments, {"batch_size": 1, "device": "cpu"})
    assert str(made._contender) == "snapkv@20%"
    assert made.max_length == 4096
    with pytest.raises(SettingError, match=r"unknown policy 'snapvk'.*snapkv"):
        HillInferLM(model, TOKENIZER, "snapvk")
