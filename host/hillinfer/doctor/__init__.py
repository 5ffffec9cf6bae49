"""What a machine has, what each missing thing means, and how to get it: ``hillinfer doctor``.

One file per subject; each yields findings from what `Machine` shows and what `Wanted` asks for. Nothing needs root.
"""

from hillinfer.doctor.examination import as_dict, examine, ready
from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

__all__ = ["Finding", "Machine", "State", "Wanted", "as_dict", "examine", "ready"]
