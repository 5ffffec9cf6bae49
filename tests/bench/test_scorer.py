"""The benchmark of the scorer on few keys: what it measures and reports, not how fast it is."""

import json

import pytest

from hillinfer.bench import scorer
from hillinfer.cli import run
from hillinfer.errors import SettingError

_SMALL = scorer.Settings(groups=(1, 3), dims=(64,), threads=(1, 2), nbytes=1 << 20, rounds=1)


def test_every_figure_has_its_bounds():
    said = []
    figures = scorer.run(_SMALL, said.append)
    assert len(figures) == 3 * 2 * 2
    assert all(said)
    for each in figures:
        assert min(each.rate, each.read, each.cached, each.keys_per_s) > 0
        assert each.share_of_read == pytest.approx(each.rate / each.read)
        assert each.share_of_bound == pytest.approx(each.rate / min(each.read, each.core or each.read))
        assert (each.over_torch is None) == (each.over_torch_held is None) == (each.threads == 2)
        if each.over_torch is not None and each.over_torch_held is not None:
            assert each.torch.keys() == {"int8", "bf16", "fp16", "fp32"}
            assert each.over_torch == pytest.approx(each.keys_per_s / max(each.torch.values()))
            assert each.over_torch <= each.over_torch_held
    bound = scorer.bounds(figures)["scorer_int8_over_torch"]
    assert "torch alone comes to" in bound.bound
    ratio = scorer.as_dict(figures, _SMALL)["summary"]["scorer_int8_over_torch"]
    assert bound.value == pytest.approx(ratio * bound.distance)
    products = {(each.key_format, each.group): each.products_per_byte for each in figures}
    assert products["int8", 3] == 3 / 64
    assert products["int4", 3] == 3 / 32
    assert products["fp16", 3] is None


def test_the_summary_is_of_one_thread_and_few_queries():
    figures = scorer.run(scorer.Settings(("int4",), (1, 3), (64,), (1,), 1 << 20, 1, with_torch=False))
    summary = scorer.as_dict(figures, _SMALL)["summary"]
    assert summary["scorer_int4_share_of_bound"] == figures[0].share_of_read
    assert summary["scorer_int8_share_of_bound"] is None
    assert summary["scorer_int8_over_torch"] is None
    [(name, bound)] = scorer.bounds(figures).items()
    assert name == "scorer_int4_share_of_bound"
    assert bound.value * figures[0].read == pytest.approx(min(figures[0].read, figures[0].cached))
    assert bound.distance * summary[name] == pytest.approx(bound.value)


def test_the_command_prints_a_table_and_writes_json(tmp_path, capsys):
    output = tmp_path / "scorer.json"
    arguments = "bench scorer --formats int8 --groups 1 --dims 64 --threads 1 --size 1MiB --rounds 1 --variant portable"
    assert run([*arguments.split(), "--output", str(output)]) == 0
    assert json.loads(output.read_text())["variant"] == "portable"
    assert "scorer_int8_over_torch" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", [{"formats": ("int2",)}, {"groups": ()}, {"dims": (2048,)}, {"nbytes": 1000}])
def test_what_cannot_be_measured_is_refused(wrong):
    with pytest.raises(SettingError):
        scorer.Settings(**wrong)


def test_half_a_query_is_an_error(tmp_path, capsys):
    assert run(["bench", "scorer", "--groups", "400.5", "--output", str(tmp_path / "scorer.json")]) == 2
    assert "whole numbers" in capsys.readouterr().err
