"""The graph folds, shares and rewires while it is built; the value stays what plain integers say."""

from __future__ import annotations

import random
from collections.abc import Callable

from hls2rtl.graph import Graph, Node
from hls2rtl.verilog.expressions import expression
from hypothesis import given, settings
from hypothesis import strategies as st

_WIDTHS = (1, 2, 3, 8, 16, 17, 33, 64)


def evaluate(node: Node, inputs: dict[str, int]) -> int:
    """What the circuit of a node computes."""
    known: dict[Node, int] = {}

    def value(n: Node) -> int:
        if n not in known:
            known[n] = compute(n) & n.mask
        return known[n]

    def signed(n: Node) -> int:
        return value(n) - (1 << n.width) if value(n) >> (n.width - 1) else value(n)

    def compute(n: Node) -> int:
        if n.op == "const":
            return n.value
        if n.op == "argument":
            return inputs[n.target]
        if n.op == "concat":
            bits = 0
            for part in n.args:
                bits = bits << part.width | value(part)
            return bits
        if n.op == "mul":
            factors = [signed(a) if n.value >> k & 1 else value(a) for k, a in enumerate(n.args)]
            return factors[0] * factors[1]
        a = n.args[0]
        b = n.args[1] if len(n.args) > 1 else a
        plain: dict[str, Callable[[], int]] = {
            "add": lambda: value(a) + value(b),
            "sub": lambda: value(a) - value(b),
            "and": lambda: value(a) & value(b),
            "or": lambda: value(a) | value(b),
            "xor": lambda: value(a) ^ value(b),
            "not": lambda: ~value(a),
            "shl": lambda: value(a) << min(value(b), n.width),
            "lshr": lambda: value(a) >> value(b),
            "ashr": lambda: signed(a) >> value(b),
            "eq": lambda: value(a) == value(b),
            "ult": lambda: value(a) < value(b),
            "ule": lambda: value(a) <= value(b),
            "slt": lambda: signed(a) < signed(b),
            "sle": lambda: signed(a) <= signed(b),
            "select": lambda: value(b) if value(a) else value(n.args[2]),
            "replicate": lambda: -value(a),
            "bits": lambda: value(a) >> n.value,
        }
        return int(plain[n.op]())

    return value(node)


class Pair:
    """A node beside the integer that it stands for."""

    def __init__(self, node: Node, value: int) -> None:
        self.node, self.value = node, value & node.mask

    @property
    def signed(self) -> int:
        return self.value - (1 << self.node.width) if self.value >> (self.node.width - 1) else self.value


def _grow(g: Graph, rng: random.Random, pairs: list[Pair]) -> Pair:
    """One more operation on what is there."""
    x = rng.choice(pairs)
    width = x.node.width
    same = [p for p in pairs if p.node.width == width]
    y = rng.choice(same)
    c = Pair(g.const(width, rng.choice((0, 1, -1, rng.getrandbits(width), 1 << rng.randrange(width)))), 0)
    c.value = c.node.value
    y = c if rng.random() < 0.4 else y
    bit = rng.choice([p for p in pairs if p.node.width == 1])
    n = rng.randrange(width)
    amount = Pair(g.const(width, n), n) if rng.random() < 0.7 or n >= 1 << width else y
    shift = amount.value if amount.value < width else 0
    amount = amount if amount.value < width else Pair(g.const(width, 0), 0)
    low = rng.randrange(width)
    part = rng.randrange(1, width - low + 1)
    wider = width + rng.choice((1, 5, 32))
    predicates: dict[str, bool] = {
        "eq": x.value == y.value,
        "ne": x.value != y.value,
        "ult": x.value < y.value,
        "uge": x.value >= y.value,
        "ule": x.value <= y.value,
        "ugt": x.value > y.value,
        "slt": x.signed < y.signed,
        "sge": x.signed >= y.signed,
        "sle": x.signed <= y.signed,
        "sgt": x.signed > y.signed,
    }
    predicate = rng.choice(list(predicates))
    return rng.choice(
        [
            lambda: Pair(g.add(x.node, y.node), x.value + y.value),
            lambda: Pair(g.sub(x.node, y.node), x.value - y.value),
            lambda: Pair(g.mul(x.node, y.node), x.value * y.value),
            lambda: Pair(g.and_(x.node, y.node), x.value & y.value),
            lambda: Pair(g.or_(x.node, y.node), x.value | y.value),
            lambda: Pair(g.xor(x.node, y.node), x.value ^ y.value),
            lambda: Pair(g.not_(x.node), ~x.value),
            lambda: Pair(g.shift("shl", x.node, amount.node), x.value << shift),
            lambda: Pair(g.shift("lshr", x.node, amount.node), x.value >> shift),
            lambda: Pair(g.shift("ashr", x.node, amount.node), x.signed >> shift),
            lambda: Pair(g.compare(predicate, x.node, y.node), predicates[predicate]),
            lambda: Pair(g.select(bit.node, x.node, y.node), x.value if bit.value else y.value),
            lambda: Pair(g.bits(x.node, low, part), x.value >> low),
            lambda: Pair(g.zext(x.node, wider), x.value),
            lambda: Pair(g.sext(x.node, wider), x.signed),
            lambda: Pair(g.concat([x.node, y.node]), x.value << width | y.value),
            lambda: Pair(g.replicate(bit.node, 5), -bit.value),
        ]
    )()


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_built_means_what_integers_mean(seed: int) -> None:
    rng = random.Random(seed)
    g = Graph()
    inputs = {f"i{k}": rng.choice((0, -1, rng.getrandbits(w), 1)) & ((1 << w) - 1) for k, w in enumerate(_WIDTHS)}
    pairs = [Pair(g.argument(f"i{k}", width), inputs[f"i{k}"]) for k, width in enumerate(_WIDTHS)]
    for _ in range(40):
        made = _grow(g, rng, pairs)
        assert evaluate(made.node, inputs) == made.value, made.node
        assert made.value & ~made.node.ones == 0, "a bit that was thought to be 0 is 1"
        if made.node.width <= 200:
            pairs.append(made)


def test_a_mask_is_wiring_and_fields_join_without_gates() -> None:
    g = Graph()
    a, b = g.argument("a", 32), g.argument("b", 32)
    low = g.and_(a, g.const(32, 0xFF))
    high = g.shift("shl", g.and_(b, g.const(32, 0xFF)), g.const(32, 8))
    joined = g.or_(low, high)
    assert joined.op == "concat"
    assert expression(joined, lambda n: n.target or str(n.op)).startswith("{")


def test_a_bit_test_on_a_wide_value_is_one_wire() -> None:
    g = Graph()
    wide = g.argument("wide", 200)
    test = g.compare("ne", g.and_(wide, g.const(200, 1 << 150)), g.const(200, 0))
    assert (test.op, test.value, test.args) == ("bits", 150, [wide])
    sign = g.compare("slt", wide, g.const(200, 0))
    assert (sign.op, sign.value, sign.args) == ("bits", 199, [wide])


def test_products_keep_the_widths_of_their_factors() -> None:
    g = Graph()
    a, b = g.argument("a", 8), g.argument("b", 16)
    product = g.mul(g.sext(a, 41), g.zext(b, 41))
    assert (product.op, product.args, product.value) == ("mul", [b, a], 2)
    assert expression(product, lambda n: n.target) == "$signed({1'b0, b}) * $signed(a)"
