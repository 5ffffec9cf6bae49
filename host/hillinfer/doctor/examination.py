"""All subjects in order, and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hillinfer.doctor import (
    cards,
    folder,
    frameworks,
    image,
    libraries,
    memory,
    models,
    p2p,
    processor,
    pynq,
    runtime,
)
from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

_SUBJECTS = (processor, memory, folder, frameworks, models, libraries, cards, runtime, image, p2p, pynq)


def examine(
    wanted: Wanted, machine: Machine | None = None, on_subject: Callable[[str], None] | None = None
) -> list[Finding]:
    """Every finding, subject by subject; ``on_subject`` is told each subject's name before it is looked at.

    Nothing is changed on the machine but for a nameless file of 16 MiB in the cold folder, which is gone at the end.
    """
    machine = machine or Machine()
    found: list[Finding] = []
    for subject in _SUBJECTS:
        if on_subject is not None:
            on_subject(subject.SUBJECT)
        found += _guarded(subject.SUBJECT, subject.examine, machine, wanted)
    return found


def ready(findings: list[Finding]) -> bool:
    """Whether the chosen device can run: nothing it needs is missing."""
    return not any(finding.state is State.MISSING for finding in findings)


def as_dict(wanted: Wanted, findings: list[Finding]) -> dict[str, Any]:
    """What ``--json`` prints: device, ready, findings."""
    listed = [{**vars(finding), "state": finding.state.value} for finding in findings]
    return {"device": wanted.device, "ready": ready(findings), "findings": listed}


def _guarded(
    subject: str, look: Callable[[Machine, Wanted], Iterator[Finding]], machine: Machine, wanted: Wanted
) -> list[Finding]:
    """A subject's findings; what goes wrong while looking is one of them.

    A doctor that falls over what it finds helps nobody, and here drivers and file systems of any kind are asked.
    """
    found: list[Finding] = []
    try:
        found.extend(look(machine, wanted))
    except ImportError as error:
        means = "a library that this is looked at with is missing or broken"
        found.append(Finding(subject, "look", State.WARNING, str(error), means, "see frameworks and native module"))
    except Exception as error:
        means = "this part of the machine could not be looked at; that alone keeps no device from running"
        fix = "a defect of the doctor: please report it with the output of hillinfer doctor --json"
        kind = type(error).__name__
        found.append(Finding(subject, "look", State.WARNING, f"{kind}: {error}", means, fix))
    return found
