"""A number that says where it was found."""

from __future__ import annotations

import math
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_KEYS = {"value", "source", "derived"}


class Number(float):
    """A float ≥ 0 with its source: a document, a datasheet, or "measured by …".

    In a file: ``bandwidth = { value = 1.0e12, source = "datasheet" }``; with ``derived = true`` for what was worked
    out from other figures.
    """

    source: str
    derived: bool

    def __new__(cls, value: float, source: str, *, derived: bool = False) -> Number:
        number = super().__new__(cls, value)
        number.source, number.derived = source, derived
        return number

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.source

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._read, serialization=core_schema.plain_serializer_function_ser_schema(cls._write)
        )

    @classmethod
    def _read(cls, given: Any) -> Number:
        if isinstance(given, Number):
            return given
        if not isinstance(given, dict) or not {"value", "source"} <= given.keys() <= _KEYS:
            raise ValueError('write { value = …, source = "…" }, and derived = true if it was worked out')
        value, source = given["value"], given["source"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            raise ValueError(f"its value must be a number that is not negative, not {value!r}")
        if not isinstance(source, str) or not source.strip():
            raise ValueError("its source must say where the value was found")
        return cls(value, source, derived=given.get("derived") is True)

    def _write(self) -> dict[str, Any]:
        return {"value": float(self), "source": self.source} | ({"derived": True} if self.derived else {})


class Positive(Number):
    """A number above 0: a rate that something is divided by."""

    @classmethod
    def _read(cls, given: Any) -> Number:
        number = super()._read(given)
        if not number > 0:
            raise ValueError("its value must be above 0")
        return number
