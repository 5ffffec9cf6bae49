"""What makes an image unfit: another ABI, another memory, emulation or card, another shell, another file."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import uuid
from pathlib import Path

import pytest

from hillinfer.csd.abi import numbers
from hillinfer.csd.xclbin import check_mode, check_provenance, check_shell, find_scorer
from hillinfer.csd.xclbin.checks import POINTERS, SCALARS
from hillinfer.errors import DeviceError
from scripts.hw_emu.xclbin import INTERFACE

ROOT = Path(__file__).resolve().parents[3]


def test_the_arguments_are_those_of_the_kernel():
    source = (ROOT / "hls/qk_score.cpp").read_text()
    signature = re.search(r"void qk_score\((.*?)\)", source, re.DOTALL)
    assert signature is not None
    names = [argument.split()[-1].lstrip("*") for argument in signature[1].split(",")]
    assert names == [*POINTERS, *SCALARS]


def test_the_version_is_what_the_hls_script_gives_the_kernel():
    """Vitis calls a kernel 1.0 unless the script says another: with another ABI it must."""
    said = re.search(r"export_design[^\n]* -version (\d+)", (ROOT / "hls/vitis/hls.tcl").read_text())
    assert int(said[1] if said else 1) == numbers.ABI_VERSION


def test_a_fit_image_is_found_fit(changed):
    image = changed()
    scorer = find_scorer(image)
    assert scorer.unit.name == "qk_score_1"
    assert [memory.tag for memory in scorer.memories] == ["bank0"] * 4
    assert scorer.units == 1
    check_mode(image, "hw_emu")
    check_shell(image, "xrt:0", INTERFACE, None)
    check_shell(image, "xrt:0", None, image.platform)
    check_shell(image, "xrt:0", uuid.UUID(int=0), None)
    check_provenance(image)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"qk_score:1.0", b"qk_score:2.0", "version 2.0 of the kernel, not 1"),
        (b"hls:qk_score:1.0", b"hls.qk_score:1.0", "version unknown"),
        (b'"exps"', b'"exqs"', "its arguments are query, keys, exqs, blocks, n_tokens"),
        (b'id="3"', b'id="4"', "not numbered in order"),
        (b'name="tag" addressQualifier="0"', b'name="tag" addressQualifier="1"', "tag is no scalar of 32 bits"),
        (b'name="keys" addressQualifier="1"', b'name="keys" addressQualifier="0"', "keys is no pointer of 64 bits"),
        (b'dataWidth="512"', b'dataWidth="256"', "query goes through a port of 256 bits"),
        (b'offset="0x10"', b'offset="0x04"', "the register of query is at 0x4"),
        (b'offset="0x1c"', b'offset="0x16"', "the register of keys is at 0x16"),
        (b'type="int"', b'type="xyz"', "n_tokens is of the type xyz"),
        (b'Protocol="ap_ctrl_chain"', b'Protocol="ap_ctrl_none_"', "is started by ap_ctrl_none_, not ap_ctrl_chain"),
        (struct.pack("<II", 1, 0x101), struct.pack("<II", 1, 0x001), "is started by ap_ctrl_hs, not ap_ctrl_chain"),
    ],
)
def test_another_abi(changed, old, new, message):
    with pytest.raises(DeviceError, match=f"speaks another ABI than this package: .*{message}.*make xclbin"):
        find_scorer(changed((old, new)))


def test_another_kernel_or_no_memory(changed):
    with pytest.raises(DeviceError, match=r"has qk_scope, and no compute unit of qk_score"):
        find_scorer(changed((b"qk_score", b"qk_scope")))
    with pytest.raises(DeviceError, match="blocks of qk_score_1 reaches no memory"):
        find_scorer(changed((struct.pack("<iii", 3, 0, 0), struct.pack("<iii", 7, 0, 0))))
    with pytest.raises(DeviceError, match="memory bank0 begins at 0x4000000020, within a beat"):
        find_scorer(changed((struct.pack("<Q", 0x4000000000), struct.pack("<Q", 0x4000000020))))


def test_emulation_and_card(changed):
    image = changed()
    with pytest.raises(DeviceError, match=r"for hw_emu, but XCL_EMULATION_MODE is not set: set XCL_EMULATION_MODE=hw_"):
        check_mode(image, None)
    with pytest.raises(DeviceError, match="is sw_emu: set XCL_EMULATION_MODE=hw_emu"):
        check_mode(image, "sw_emu")
    card = changed((struct.pack("<BBHH", 2, 13, 4, 0), struct.pack("<BBHH", 2, 13, 1, 0)))
    check_mode(card, None)
    with pytest.raises(DeviceError, match="for hw, but XCL_EMULATION_MODE is hw_emu: unset"):
        check_mode(card, "hw_emu")


def test_another_shell(changed):
    image, other = changed(), uuid.uuid4()
    with pytest.raises(DeviceError, match=f"another shell .*interface {INTERFACE}.* than xrt:1 has .*{other}"):
        check_shell(image, "xrt:1", other, None)
    with pytest.raises(DeviceError, match=r"another shell \(xilinx_u2\S+\) than xrt:1 has \(xilinx_u50_base\)"):
        check_shell(image, "xrt:1", None, "xilinx_u50_base")


def test_provenance(changed):
    image = changed()
    record = image.path.with_name(image.path.name + ".json")

    def written(said) -> None:
        record.write_text(said if isinstance(said, str) else json.dumps(said))

    whole = {"target": "hw_emu", "sha256": {"xclbin": hashlib.sha256(image.path.read_bytes()).hexdigest()}}
    written(whole)
    check_provenance(image)
    for said, message in (
        ({**whole, "target": "hw"}, "tells of an image for hw"),
        ({**whole, "sha256": {"xclbin": "0" * 64}}, "is not the file that its record"),
        ({"sha256": []}, "is no record of an image"),
        ([], "is no record"),
        ("{", "cannot be read"),
    ):
        written(said)
        with pytest.raises(DeviceError, match=message):
            check_provenance(image)
