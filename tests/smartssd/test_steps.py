"""What each step sees and would do, from a bare box to one in order; nothing is ever run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.smartssd import run
from scripts.smartssd.cli import STEPS, main
from scripts.smartssd.step import Setting, Step
from tests.doctor.box import Box

DANGEROUS = ("mkfs", "fdisk", "parted", "dd ", "rm -", "--force", "revert")
ON_THE_MACHINE = [name for name in STEPS if name not in ("hillinfer", "pyxrt", "image", "doctor")]


def complete(box: Box, mount: Path) -> None:
    """Everything that the steps bring, for a box that has a card already."""
    for place in ("lib/modules/5.4.0-164-generic/build/Makefile", "usr/sbin/dkms", "usr/bin/lspci"):
        box.write(place, "")
    box.xrt()
    box.write("etc/udev/rules.d/99-xocl.rules", "")
    box.write("etc/udev/rules.d/99-xclmgmt.rules", "")
    box.write("opt/xilinx/firmware/u2/gen3x4-xdma-gc/base/partition.xsabin", "")
    (mount / "hillinfer-cold").mkdir(parents=True)
    box.mount(mount, "259:3")


def steps(box: Box, packages: Path = Path("none"), **more: object) -> dict[str, Step]:
    setting = Setting(box.machine, packages, repository=box.root, **more)  # type: ignore[arg-type]
    return {name: make(setting) for name, make in STEPS.items()}


def test_a_bare_box_has_everything_to_do(box: Box) -> None:
    found = steps(box)
    assert found["system"].done
    assert [name for name, step in found.items() if step.done] == ["system"]
    for step in found.values():
        assert step.done is None or step.done or step.commands or step.by_hand


def test_a_box_in_order_has_nothing_to_do(box: Box, tmp_path: Path) -> None:
    box.card(3)
    complete(box, (tmp_path / "ssd").resolve())
    found = steps(box)
    assert [name for name in ON_THE_MACHINE if not found[name].done] == ["validate"]
    assert found["cold"].found == str(tmp_path.resolve() / "ssd/hillinfer-cold")


def test_each_step_brings_what_it_says(box: Box, packages: Path) -> None:
    """Its commands name the package or the card; where the person must act, nothing is run."""
    user = box.card(3, p2p="disabled")
    box.write(f"{user}/rom.u.3/VBNV", "xilinx_u2_gen3x4_xdma_gc_base_1\n")
    found = steps(box, packages)
    lines = {name: [" ".join(command) for command in step.commands] for name, step in found.items()}
    assert lines["headers"][1].endswith("install -y linux-headers-5.4.0-164-generic dkms pciutils")
    assert lines["xrt"][0].endswith(f"install -y {packages}/xrt_202210.2.13.466_20.04-amd64-xrt.deb")
    assert lines["platform"][0].endswith("validate_2-3311104_all.deb")
    assert lines["validate"] == ["/opt/xilinx/xrt/bin/xbutil validate --device 0000:05:00.1"]
    assert lines["p2p"][0].endswith("xbutil configure --device 0000:05:00.1 --p2p enable")
    assert lines["shell"] == lines["cold"] == lines["image"] == []
    assert any("mkfs.ext4 -m 0 /dev/nvme1n1" in line for line in found["cold"].by_hand)
    assert not any(word in line for each in lines.values() for line in each for word in DANGEROUS)


def test_only_what_was_asked_for_is_flashed_and_after_typing_its_address(box: Box, packages: Path) -> None:
    for bus in (3, 13):
        user = box.card(bus, drive=f"nvme{bus}")
        box.write(f"{user}/rom.u.{bus}/VBNV", "xilinx_u2_gen3x4_xdma_gc_base_1\n")
    asked = steps(box, packages, flash=True, wanted=("0000:0f:00",))["shell"]
    assert asked.confirm == "0000:0f:00.0"
    [command] = asked.commands
    assert " ".join(command).endswith(
        "xbmgmt program --device 0000:0f:00.0 --base "
        "--image /opt/xilinx/firmware/u2/gen3x4-xdma-gc/base/partition.xsabin"
    )


@pytest.mark.parametrize(("state", "says"), [("no iomem", "warm reboot"), ("not supported", "cannot be turned on")])
def test_p2p_that_a_command_cannot_bring(box: Box, state: str, says: str) -> None:
    box.card(3, p2p=state)
    step = steps(box)["p2p"]
    assert (step.done, step.commands) == (False, ())
    assert says in step.by_hand[0]


@pytest.mark.parametrize(("release", "kernel"), [("22.04", "5.4.0-1-generic"), ("20.04", "6.5.0-1-generic")])
def test_a_system_that_xrt_is_not_for(box: Box, release: str, kernel: str) -> None:
    box.write("etc/os-release", f'VERSION_ID="{release}"\nID=ubuntu\n')
    box.write("proc/sys/kernel/osrelease", kernel)
    step = steps(box)["system"]
    assert not step.done
    assert step.found.startswith(f"ubuntu {release}, kernel {kernel}")


def test_the_dry_run_shows_every_step_of_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert [name for name in STEPS if f". {name}: " in shown] == list(STEPS)
    assert "Nothing was run" in shown


def test_steps_are_chosen_by_name(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "xrt", "card", "--skip", "xrt"], box.machine) == 0
    assert capsys.readouterr().out.startswith("1. card: ")
    with pytest.raises(SystemExit) as stop:
        main(["--only", "mkfs"], box.machine)
    assert stop.value.code == 2


def test_the_machine_is_only_read(box: Box, packages: Path) -> None:
    box.card(3)
    before = sorted(box.root.rglob("*"))
    run.show(list(steps(box, packages).values()))
    assert sorted(box.root.rglob("*")) == before
