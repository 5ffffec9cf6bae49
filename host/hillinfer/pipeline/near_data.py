"""Choosing by scores that are made where the keys lie, on both sides at once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.csd.contract import Stream
from hillinfer.kv.copies import CopyKind
from hillinfer.kv.device_copies import Arriving
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.at_once import ChosenAtOnce
from hillinfer.pipeline.choosing import WINDOW, Chooser
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.pipeline.last_queries import LastQueries
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import PerHead, SelectingPolicy
from hillinfer.store.token_stream import TokenStream

_FEWEST = 256  # tokens: a scoring copy is not fitted to less; until then everything is attended

_Asked = tuple[npt.NDArray[np.float32], PerHead]
"""A query float32 [H, G, d] and its log-normaliser."""


class NearData(Chooser):
    """Runs a selecting policy, and remembers its normalisers and, for a scoring copy that is fitted, the last queries.

    meanwhile   called when the host has done its share of the scoring and would only wait for the device
    threads     that share the work of a step, the caller's included
    apart       each side is to score its own tiles, also where one of them could score all in one call
    """

    asks_in_dram = True

    def __init__(
        self,
        policy: SelectingPolicy,
        geometry: Geometry,
        kind: CopyKind,
        evaluator: Evaluator,
        trace: Trace,
        meanwhile: Callable[[], None],
        *,
        threads: int = 1,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self._threads = _native.ThreadPool(threads) if threads > 1 else None
        self._kind, self._geometry = kind, geometry
        self._last: dict[Stream, LastQueries] = {}
        self._copy_bytes: dict[Stream, int] = {}
        self._policy, self._evaluator, self._trace, self._meanwhile = policy, evaluator, trace, meanwhile
        self._normaliser: dict[Stream, PerHead] = {}
        self._lse: dict[Stream, Arriving] = {}  # of the last step, on its way from where it was attended
        self._reduce = None if kind.fitted else policy.reduction
        self._window: defaultdict[Stream, list[_Asked]] = defaultdict(list)

    def exact(self, tokens: int) -> bool:
        return self._policy.exact(tokens) or (self._kind.fitted and tokens < _FEWEST)

    def read(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        queries = query[:, :, -WINDOW:].float().cpu().numpy()
        lses = lse[:, :, -WINDOW:].float().cpu().numpy()
        recent = [(queries[:, :, t], lses[:, :, t]) for t in range(queries.shape[2])]
        self._window[stream] = [*self._window[stream], *recent][-WINDOW:]
        self._normaliser[stream] = lses[:, :, -1]
        self._lse.pop(stream, None)
        self._remember(stream, query)

    def stepped(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        self._lse[stream] = Arriving(lse)
        self._remember(stream, query)

    def _normaliser_of(self, stream: Stream) -> PerHead | None:
        """The stream's normaliser, its last step observed; None before anything was attended."""
        lse = self._lse.pop(stream, None)
        if lse is not None:
            self._normaliser[stream] = self._policy.observe(self._normaliser.get(stream), lse.wait().numpy())
        return self._normaliser.get(stream)

    def _remember(self, stream: Stream, query: torch.Tensor) -> None:
        if self._kind.fitted:
            if stream not in self._last:
                self._last[stream] = LastQueries(self._geometry)
            self._last[stream].add(query)

    def _keep_fitted(self, stream: TokenStream) -> None:
        """Fit the stream's scoring copy where there is none yet, or the stream has outgrown it."""
        kind = self._kind
        if kind.fitted and (stream.copy is None or stream.length > stream.fitted_at * (1 + kind.growth)):
            with self._trace.span("fit the scoring copy"):
                stream.fit(kind, self._last[stream.id].values)
            assert stream.copy is not None
            self._copy_bytes[stream.id] = stream.copy.nbytes

    def _queries(
        self, stream: TokenStream, query: npt.NDArray[np.float32], normaliser: PerHead, scaling: float
    ) -> list[QuantisedQuery]:
        """What the stream's scoring keys are to be scored with, for a query float32 [H, G, d]."""
        assert stream.copy is not None
        lowest = stream.lowest_exponent
        if not self._kind.fitted:
            return self._policy.queries(query, scaling, normaliser, lowest)
        seen, shift = stream.copy.query(query)
        if shift is not None:  # a raw sum over heads has no normaliser, and is ranked alike without the shift
            normaliser = normaliser - np.float32(scaling) * shift
        lowest = lowest + np.int8(4)  # a raw sum is bounded as if integers went to ±127: 7·2⁴ is still below
        queries = self._policy.queries(seen, scaling, normaliser, lowest)
        return [replace(each, key_format=self._kind.key_format) for each in queries]

    def choose(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        normaliser = self._normaliser_of(stream.id)
        if normaliser is None:  # nothing was attended yet
            return None
        self._keep_fitted(stream)
        return self._select(stream, (query.float().cpu().numpy(), normaliser), scaling)

    def at_once(
        self, stream: TokenStream, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float
    ) -> ChosenAtOnce | None:
        normaliser, count = self._normaliser_of(stream.id), self._policy.best_of(stream.length)
        if self._apart or normaliser is None or count is None or not stream.read_in_place:
            return None
        self._keep_fitted(stream)
        tiers = stream.tiers()
        if tiers is None:
            return None
        query, keys, values = query.float().contiguous(), keys.contiguous(), values.contiguous()
        start = time.perf_counter()
        if self._reduce is not None:
            lowest, summed = stream.lowest_exponent, self._reduce == "sum"
            asked = tiers.ask(query.data_ptr(), scaling, None if summed else normaliser, lowest, summed)
        else:
            asked = self._queries(stream, query[:, :, 0].numpy(), normaliser, scaling)[0].native
        handicap = self._policy.handicap
        chosen = ChosenAtOnce(
            stream, tiers, asked, query, keys, values, scaling, count, handicap, self._threads, self._trace
        )
        self._evaluator.scored_at_once(stream, chosen.scored_at - start)
        return chosen

    def guess(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> Positions | None:
        normaliser = self._normaliser_of(stream.id)
        if normaliser is None or stream.copy is None:
            return None
        sets = self._select(stream, (query.float().cpu().numpy(), normaliser), scaling, count=False)
        return sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))

    def recall(self, stream: TokenStream, scaling: float) -> list[list[Positions]]:
        self._keep_fitted(stream)
        window = self._window.pop(stream.id, ())  # where rows are is only now to be decided by what it selects
        return [self._select(stream, asked, scaling, count=False, handicap=0) for asked in window]

    def nbytes(self, stream: Stream) -> int:
        last = self._last.get(stream)
        return (0 if last is None else last.nbytes) + self._copy_bytes.get(stream, 0)

    def _select(
        self, stream: TokenStream, asked: _Asked, scaling: float, *, count: bool = True, handicap: int | None = None
    ) -> list[Positions]:
        """``handicap``: of tokens in the cold pool; None: the policy's."""
        queries = self._queries(stream, asked[0], asked[1], scaling)
        with self._trace.span("evaluate"):
            scores = self._evaluator.score(stream, queries, self._meanwhile, count=count)
        with self._trace.span("select"):
            by = self._policy.handicap if handicap is None else handicap
            for each in scores if by else ():
                _native.handicap(each, stream.hot_pool.slot_of, by)
            return self._policy.select(scores)
