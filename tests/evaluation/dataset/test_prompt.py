import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.documents import frame
from hillinfer.errors import SettingError
from hillinfer.evaluation.dataset.prompt import answer_tokens, fit
from tests.tiny import BOS, tiny_tokenizer

TOKENIZER = tiny_tokenizer()


@given(st.text("abc", max_size=60), st.integers(2, 50))
def test_first_and_last_half_in_tokens(text: str, room: int) -> None:
    """Slow oracle: letters are tokens here."""
    fitted = fit(TOKENIZER, text, room, chat=False)
    expected = text if len(text) <= room else text[: room // 2] + text[len(text) - room // 2 :]
    assert TOKENIZER.decode(fitted.tokens) == expected
    assert fitted.cut == len(text) - len(expected)
    assert fitted.form == "plain"


def test_in_the_chat_template() -> None:
    head, tail = frame(TOKENIZER)
    fitted = fit(TOKENIZER, "x" * 30 + "y" * 30, len(head) + len(tail) + 11, chat=True)
    assert fitted.tokens.tolist() == head + TOKENIZER.encode("xxxxxyyyyy", add_special_tokens=False) + tail
    assert (fitted.cut, fitted.form) == (50, "chat")
    assert fitted.tokens[0] == BOS


def test_a_model_without_a_chat_template_gets_the_plain_prompt() -> None:
    plain = tiny_tokenizer()
    plain.chat_template = None
    fitted = fit(plain, "What?", 50, chat=True)
    assert plain.decode(fitted.tokens) == "What?"
    assert fitted.form == "plain"


def test_control_tokens_in_a_text_are_spelled_out() -> None:
    assert fit(TOKENIZER, "<s>", 50, chat=False).tokens.tolist() != [BOS]
    assert len(fit(TOKENIZER, "<s>", 50, chat=False).tokens) == 3


def test_no_room() -> None:
    with pytest.raises(SettingError, match=r"no room for a prompt.*--lengths"):
        fit(TOKENIZER, "What?", 10, chat=True)


@pytest.mark.parametrize(
    ("prompt", "chat", "expected"),
    [
        ("Answer:", False, " Ames"),
        ("is", False, " Ames"),
        ("code:\n", False, "Ames"),
        ("回答：", False, "Ames"),
        ("Answer:", True, "Ames"),
    ],
)
def test_a_right_answer_goes_on_after_the_prompt(prompt: str, chat: bool, expected: str) -> None:
    assert TOKENIZER.decode(answer_tokens(TOKENIZER, prompt, "Ames", chat, 50)) == expected
    assert len(answer_tokens(TOKENIZER, prompt, "Ames", chat, 2)) == 2
