"""Device names: what people write, and what is wrong with what they wrote, in one line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.config import StoreSettings
from hillinfer.csd.names import KINDS, DeviceName, parse_devices
from hillinfer.errors import SettingError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("software", [DeviceName("software")]),
        ("rtl", [DeviceName("rtl")]),
        ("xrt:0", [DeviceName("xrt", "0")]),
        ("xrt:0000:3B:00.1", [DeviceName("xrt", "0000:3b:00.1")]),
        ("xrt:3b:00.1", [DeviceName("xrt", "3b:00.1")]),
        ("xrt:0, xrt:1", [DeviceName("xrt", "0"), DeviceName("xrt", "1")]),
        ("pynq:2", [DeviceName("pynq", "2")]),
        ("native,rtl,native", [DeviceName("native"), DeviceName("rtl"), DeviceName("native")]),
    ],
)
def test_names_are_read_and_written(text, names):
    assert parse_devices(text) == tuple(names)
    assert parse_devices(",".join(map(str, names))) == tuple(names)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "unknown device ''.*known are software, native, rtl, xrt, pynq"),
        ("sofware", "unknown device 'sofware'.*did you mean 'software'"),
        ("xrt", "'xrt' names no card: write xrt:0 or xrt:0000:3b:00.1"),
        ("xrt:", "names no card"),
        ("xrt:3b:00", "names no card"),
        ("pynq:0000:3b:00.1", "names no card: write pynq:0$"),
        ("rtl:0", "rtl has no cards to choose from, write 'rtl'"),
        ("xrt:0,xrt:0", "named twice"),
        ("xrt:3b:00.1,xrt:3B:00.1", "named twice"),
        ("xrt:0,", "unknown device ''"),
        ("software,rtl", "name it alone, or only cards"),
    ],
)
def test_what_is_no_device_is_told_in_a_line(text, says):
    with pytest.raises(SettingError, match=says) as told:
        StoreSettings(device=text)
    assert "\n" not in str(told.value)


@given(st.text(alphabet="softwarexpynql:,.0123 ", max_size=20))
def test_any_text_is_names_or_a_setting_error(text):
    try:
        names = parse_devices(text)
    except SettingError:
        return
    assert all(name.kind in KINDS for name in names)
    assert parse_devices(",".join(map(str, names))) == names


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"device_keys": "resdent"}, "unknown device_keys 'resdent': did you mean 'resident'"),
        ({"device_split": "heads"}, "unknown device_split"),
        ({"on_device_error": "retry"}, "unknown on_device_error 'retry': known are fail, fallback"),
        ({"xclbin": "a.xclbin"}, "an xclbin is for a card, and software is none"),
        ({"xclbin": "a.xclbin", "device": "rtl,native"}, "rtl,native is none"),
    ],
)
def test_settings_of_the_device_are_checked(settings, says):
    with pytest.raises(SettingError, match=says):
        StoreSettings(**settings)
    StoreSettings(xclbin="a.xclbin", device="xrt:0", device_keys="stream", on_device_error="fallback")
