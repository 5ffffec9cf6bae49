"""The whole examination: its verdict, and that no machine makes it fall over."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.doctor import (
    Finding,
    Machine,
    State,
    Wanted,
    as_dict,
    cards,
    examination,
    examine,
    memory,
    p2p,
    processor,
    ready,
    runtime,
)
from tests.doctor.box import Box


@pytest.mark.parametrize("state", State)
def test_only_what_is_missing_keeps_a_device_from_running(state: State) -> None:
    findings = [Finding("cards", "one", State.OK, "there"), Finding("cards", "two", state, "perhaps", "means", "fix")]
    assert ready(findings) is (state is not State.MISSING)
    told = as_dict(Wanted("xrt:0"), findings)
    assert (told["device"], told["ready"]) == ("xrt:0", ready(findings))
    assert told["findings"][1] == {
        "subject": "cards",
        "name": "two",
        "state": state.value,
        "found": "perhaps",
        "means": "means",
        "fix": "fix",
    }


def test_a_subject_that_falls_over_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fall(*_: object) -> None:
        raise RuntimeError("odd driver")

    monkeypatch.setattr(cards, "examine", fall)
    monkeypatch.setattr(examination, "_SUBJECTS", (memory, cards, runtime))
    found = examine(Wanted(), Machine(tmp_path))
    assert list(dict.fromkeys(finding.subject for finding in found)) == ["memory", "cards", "XRT"]
    [broken] = [finding for finding in found if finding.name == "look"]
    assert broken.found == "RuntimeError: odd driver"
    assert broken.state is State.WARNING


odd = st.sampled_from(
    ["", "\0", "0x", "bar:", "bar:x\nrbar:99", "-1", "9" * 30, "é" * 9, "a b c\n- \n - - -\n", "[]", "{"]
)
SUBJECTS = (cards, p2p, memory, processor)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_odd_files_make_nothing_fall_over(data: st.DataObject) -> None:
    """Any file of a sound machine may be empty, nonsense, binary, a folder, a link to nowhere, to itself, or absent."""
    with tempfile.TemporaryDirectory() as name:
        box = Box(Path(name))
        box.card(3)
        box.card(13, drive="nvme2")
        box.xrt()
        box.mount(Path("/"), "259:3")
        box.write("proc/meminfo", "MemAvailable: 100 kB\n")
        box.write("proc/cpuinfo", "flags : avx2\n")
        box.write("proc/self/cgroup", "0::/\n")
        files = sorted(path for path in Path(name).rglob("*") if path.is_file() or path.is_symlink())
        for path in data.draw(st.lists(st.sampled_from(files), unique=True, max_size=25)):
            if not (path.is_file() or path.is_symlink()):
                continue
            path.unlink()
            match data.draw(st.sampled_from(["text", "folder", "nowhere", "itself", "absent", "binary"])):
                case "text":
                    path.write_text(data.draw(odd))
                case "folder":
                    path.mkdir()
                case "nowhere":
                    path.symlink_to("/nowhere/at/all")
                case "itself":
                    path.symlink_to(path.name)
                case "binary":
                    path.write_bytes(bytes(range(256)))
        for subject in SUBJECTS:
            for finding in subject.examine(
                box.machine, Wanted(data.draw(st.sampled_from(["xrt:0", "xrt:05:00.1", "pynq:1"])))
            ):
                assert finding.found
