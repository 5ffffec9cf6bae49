"""The real default model and a document of 1,000 tokens: every device gives the text of the software device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hillinfer.config import StoreSettings
from hillinfer.documents import DEFAULT_QUESTION, build_prompt, default_document
from hillinfer.generation import generate
from hillinfer.models import load
from hillinfer.policies import create
from tests.hls.builds import native_library
from tests.hw_emu.emulation import needs_xrt
from tests.rtl_device.build import rtl_library

pytestmark = pytest.mark.real

TOKENS, NEW = 1000, 8
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def loaded():
    return load(None)


@pytest.fixture(scope="module")
def document(loaded):
    return default_document(loaded.tokenizer, tokens=TOKENS)


@pytest.fixture(scope="module")
def by_device(loaded, document, tmp_path_factory):
    """``by_device(name)``: the report of one run."""
    prompt = build_prompt(loaded.tokenizer, document, DEFAULT_QUESTION, 4 * TOKENS, NEW, "error")

    def run(device: str):
        store = StoreSettings(cold_dir=tmp_path_factory.mktemp("cold"), device=device)
        return generate(
            loaded.model,
            loaded.tokenizer,
            prompt.input_ids,
            policy=create("hillinfer"),
            store=store,
            max_new_tokens=NEW,
        )

    return run


@pytest.fixture(scope="module")
def expected(by_device):
    return by_device("software")


def test_the_rtl_gives_the_text_of_the_software_device(by_device, expected):
    rtl_library()
    report = by_device("rtl")
    print(f"rtl: {report.device_launches} launches in {report.device_seconds:.1f} s")
    assert (report.text, report.new_tokens) == (expected.text, expected.new_tokens)
    assert report.device_scan_bytes == expected.device_scan_bytes > 0
    assert report.device_launches >= expected.device_launches > 0


@needs_xrt
def test_a_card_does_too_in_emulation(document, expected, tmp_path):
    native_library()
    file = tmp_path / "document.txt"
    file.write_text(document, encoding="utf-8")
    command = ["generate", "--device", "xrt:0", "--prompt-file", str(file), "--prompt", DEFAULT_QUESTION]
    command += ["--max-new-tokens", str(NEW), "--cold-dir", str(tmp_path), "--json"]
    emulated = [sys.executable, "-m", "scripts.hw_emu", "run", "--deadline", "300", "--"]
    hillinfer = [sys.executable, "-m", "hillinfer.cli"]
    done = subprocess.run([*emulated, *hillinfer, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    print(f"xrt:0: {report['device_launches']} launches in {report['device_seconds']:.1f} s")
    assert (report["text"], report["device"]) == (expected.text, "xrt:0")
    assert report["device_scan_bytes"] == expected.device_scan_bytes
    assert report["device_launches"] >= expected.device_launches
    assert report["device_fallback"] is None
