"""Records of a data set's file, checked before any model runs: each error names the file, the line and the field."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from hillinfer.errors import DocumentError

_HALF = re.compile("[\ud800-\udfff]")

Record = dict[str, Any]
Fields = Mapping[str, type | tuple[type, ...]]
"""Names of fields and what they may hold."""


def read_lines(content: bytes, where: str, fields: Fields, limit: int | None = None) -> list[Record]:
    """The first ``limit`` records of a JSON-lines file, blank lines left out; ``where`` names it in errors.

    DocumentError for bytes that are not UTF-8, a line that is no JSON object, a field that is missing or of another
    type, half of a surrogate pair, and a file without a record.
    """
    lines = enumerate(_text(content, where).split("\n"), 1)  # not splitlines: U+2028 may stand in a string
    told = ((f"{where}, line {number}", line) for number, line in lines if line.strip())
    return _some([_checked(_parsed(line, here), here, fields) for here, line in islice(told, limit)], where)


def read_list(content: bytes, where: str, fields: Fields) -> list[Record]:
    """Records of a JSON file that is one list of objects; errors as above, with the record's number in the list."""
    parsed = _parsed(_text(content, where), where)
    if not isinstance(parsed, list):
        raise DocumentError(f"{where} is not a list of records: download it again")
    return _some([_checked(each, f"{where}, record {number}", fields) for number, each in enumerate(parsed, 1)], where)


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(f"{where} is not UTF-8 at byte {error.start}: download it again") from error


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if error.lineno > 1 else ""
        raise DocumentError(f"{where}{line} is not JSON ({error.msg}): was it cut off? Download it again") from error
    except RecursionError:
        raise DocumentError(f"{where} is not JSON (nested too deep): download it again") from None
    except ValueError as error:  # a number of thousands of digits
        raise DocumentError(f"{where} cannot be read ({error}): download it again") from None


def _checked(record: Any, where: str, fields: Fields) -> Record:
    if not isinstance(record, dict):
        raise DocumentError(f"{where} is not an object with fields: download the file again")
    missing = [name for name in fields if name not in record]
    if missing:
        has = ", ".join(record) or "none"
        raise DocumentError(f"{where} lacks {', '.join(missing)} (it has {has}): is it a file of this data set?")
    for name, kind in fields.items():
        if not isinstance(record[name], kind):
            raise DocumentError(f"{where}: the field {name} is {json.dumps(record[name], ensure_ascii=False)[:60]}")
    half = _HALF.search(json.dumps([record[name] for name in fields], ensure_ascii=False))
    if half is not None:  # no tokenizer takes it
        raise DocumentError(f"{where}: half of a character, \\u{ord(half.group()):x}, stands in it: download it again")
    return record


def _some(records: list[Record], where: str) -> list[Record]:
    if not records:
        raise DocumentError(f"{where} is empty: download it again")
    return records


def text_name(context: str) -> str:
    """Names a text that several records may ask about; "" for none."""
    return hashlib.sha256(context.encode("utf-8", "surrogatepass")).hexdigest()[:16] if context else ""
