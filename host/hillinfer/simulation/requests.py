"""How many reads the reader of rows makes of positions, where nobody has counted them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GAP = 1 << 14  # bytes that are read over rather than ask again (host/native/bind_rows.cpp)
_LONGEST = 1 << 17  # bytes of a request (csd/cold/reading.py)
_PAGE = 4096


def asked(positions: npt.NDArray[np.int64], row_bytes: int, alignment: int = _PAGE) -> tuple[int, int]:
    """Requests for the rows of ascending positions int64 [n], and rows that they bring, gaps included.

    alignment   bytes that requests begin and end at a multiple of: a page where the file is read past the page cache

    The rule of host/native/row_read.cpp, which counts its own requests: held against it in
    tests/simulation/test_requests.py.
    """
    apart = 1 + _GAP // row_bytes
    longest = max(_LONGEST, (row_bytes // _PAGE + 3) * _PAGE)
    most = max(1, (longest - 2 * alignment) // row_bytes)
    requests = rows = 0
    for run in np.split(positions, np.flatnonzero(np.diff(positions) > apart) + 1):
        while len(run):
            end = int(np.searchsorted(run, run[0] + most))
            requests, rows = requests + 1, rows + int(run[end - 1] - run[0]) + 1
            run = run[end:]
    return requests, rows
