import json

import pytest

from hillinfer.errors import DocumentError
from hillinfer.evaluation.dataset.records import read_lines, read_list

FIELDS = {"id": int, "text": str, "more": (list, type(None))}
GOOD = {"id": 1, "text": "line\u2028end", "more": None}


def test_lines() -> None:
    content = "\ufeff" + json.dumps(GOOD, ensure_ascii=False) + "\n\n" + json.dumps(GOOD | {"more": [1]}) + "\r\n"
    assert read_lines(content.encode(), "a.jsonl", FIELDS) == [GOOD, GOOD | {"more": [1]}]
    assert read_lines(content.encode(), "a.jsonl", FIELDS, limit=1) == [GOOD]


def test_a_list() -> None:
    assert read_list(json.dumps([GOOD]).encode(), "data.json", FIELDS) == [GOOD]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"id": 1, "text": "", "more": null}\n{"id": 1, "te', r"a\.jsonl, line 2 is not JSON .*cut off"),
        (b"[1]", r"a\.jsonl, line 1 is not an object"),
        (b'{"id": 1, "more": null}', r"line 1 lacks text \(it has id, more\)"),
        (b'{"id": "1", "text": "", "more": null}', r'line 1: the field id is "1"'),
        (b"\xff\xfe", r"a\.jsonl is not UTF-8 at byte 0"),
        (b'{"id": 1, "text": "\\ud800", "more": null}', r"line 1: half of a character, \\ud800, stands in it"),
        (b'{"id": 1, "text": "", "more": ["\\ud800"]}', r"line 1: half of a character, \\ud800, stands in it"),
        (b'{"id": ' + b"1" * 5000 + b"}", r"a\.jsonl, line 1 cannot be read \(Exceeds the limit"),
        (b"[" * 100_000, r"a\.jsonl, line 1 is not JSON \(nested too deep\)"),
        (b"\n\n", r"a\.jsonl is empty"),
        (b"", r"a\.jsonl is empty"),
    ],
)
def test_broken_lines(content: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read_lines(content, "a.jsonl", FIELDS)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'[{"id": 1,\n"te', r"data\.json, line 2 is not JSON"),
        (b"{}", r"data\.json is not a list"),
        (b'[{"id": 1}]', r"data\.json, record 1 lacks text, more \(it has id\)"),
        (b"[]", r"data\.json is empty"),
    ],
)
def test_a_broken_list(content: bytes, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        read_list(content, "data.json", FIELDS)
