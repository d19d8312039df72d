"""Pickles of Python and the JSON of docs/json.md for them.

pickles.py small   prints lines of a protocol, a pickle in hexadecimal and its JSON
pickles.py large   prints more of them, of objects too large for a file
pickles.py load    reads pickles, one a line, and prints the JSON of each
"""

import base64
import datetime
import decimal
import json
import math
import pickle
import sys
import uuid

UTC = datetime.timezone.utc


def text(s):
    return json.dumps(s, ensure_ascii=False).replace("\\n", "\\u000a")


def classed(name, inner):
    return '{"@class":%s,"@value":%s}' % (text(name), inner)


def number(f):
    if math.isnan(f):
        return '"NaN"'
    if math.isinf(f):
        return '"Infinity"' if f > 0 else '"-Infinity"'
    if f == 0:
        return "-0" if math.copysign(1, f) < 0 else "0"
    if 1e-6 <= abs(f) < 1e21:
        s = format(decimal.Decimal(repr(f)), "f")
        return s.rstrip("0").rstrip(".") if "." in s else s
    return repr(f)


def to_json(v):
    """The JSON of a value, by its type."""
    t = type(v)
    if v is None:
        return "null"
    if t is bool:
        return "true" if v else "false"
    if t is int:
        return str(v)
    if t is float:
        s = number(v)
        plain = s == "-0" or ("." in s or "e" in s) and s[0] != '"'
        return s if plain else classed("float", s)
    if t is str:
        return text(v)
    if t is bytes:
        return classed("bytes", '{"base64":"%s"}' % base64.b64encode(v).decode())
    if t is list:
        return "[%s]" % ",".join(map(to_json, v))
    if t in (tuple, set, frozenset):
        return classed(t.__name__, "[%s]" % ",".join(map(to_json, v)))
    if t is dict:
        if all(type(k) is str for k in v):
            members = (("@" + k if k.startswith("@") else k, e) for k, e in v.items())
            return "{%s}" % ",".join(text(k) + ":" + to_json(e) for k, e in members)
        return classed("dict", "[%s]" % ",".join("[%s,%s]" % (to_json(k), to_json(e)) for k, e in v.items()))
    if t is decimal.Decimal:
        sign, digits, exponent = v.as_tuple()
        digits = "".join(map(str, digits))
        s = digits
        if exponent > 0:
            s = digits + "e%d" % exponent
        elif exponent < 0:
            if len(digits) + exponent <= -20:
                s = digits + "e%d" % exponent
            else:
                digits = digits.rjust(1 - exponent, "0")
                s = digits[:exponent] + "." + digits[exponent:]
        return classed("decimal.Decimal", "-" * sign + s)
    if t is datetime.timedelta:
        return '{"@class":"datetime.timedelta","days":%d,"seconds":%d,"microseconds":%d}' % (v.days, v.seconds, v.microseconds)
    if t is datetime.timezone and v is UTC:
        return classed("datetime.timezone", '"UTC"')
    if t in (datetime.date, datetime.time, datetime.datetime):
        s = v.isoformat()
        zone = s.endswith("+00:00")
        s = s.removesuffix("+00:00")
        if "." in s:
            s = s.rstrip("0")
        return classed("datetime." + t.__name__, text(s + "Z" * zone))
    raise TypeError(t)


def copy_of(s):
    """An equal string that is another object."""
    return "".join(list(s))


key = "orders"
small = [
    None, True, False,
    0, 1, 255, 256, 65535, 65536, -1, -129, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 2**64, 10**40, -(10**40), 2**2040,
    0.0, -0.0, 1.0, 0.5, -2.75, 1e300, 1e-7, 1e16, 1e21, math.inf, -math.inf, math.nan,
    "", "a", "é€", "\U0001f600", "x" * 256, 'a"\\\n',
    b"", b"\x00\xff", b"y" * 256,
    [], [1], [1, 2], [[], [[]]],
    (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((), ("a",)),
    {}, {"a": 1}, {"a": 1, "b": [2.5, None]}, {1: "x", 2: "y"}, {("a", 1): 2}, {None: 1, "a": 2}, {"@class": 1, "@@x": 2},
    set(), {1}, frozenset(), frozenset([7]), frozenset([("b",)]), {frozenset([1])},
    [key, key], [key, copy_of(key)], [key, copy_of(key), key], [{"id": 1, "v": "id"}, {"id": 2, "v": "v"}], [b"twice" * 2] * 3, ["", "", b"", b""],
    {key: copy_of(key), "other": key},
    datetime.date(2024, 2, 29), datetime.date(1, 1, 1), datetime.time(23, 59, 58, 7), datetime.time(), datetime.datetime(2024, 2, 29, 1, 2, 3, 4),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999), datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC), UTC, datetime.timedelta(-1, 2, 3),
    [datetime.datetime(2024, 2, 29, tzinfo=UTC), datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 28, tzinfo=UTC), datetime.timedelta(1), UTC],
    [datetime.time(1, 2), datetime.time(1, 2), "datetime"],
    [decimal.Decimal(s) for s in ("1.50", "0", "0.00", "-7", "1E+5", "-1.25E+10", "0.000001", "1E-7", "1.23E-7", "12345678901234567890.123456789")],
    {"user": (1, "x"), "tags": {"a"}, "amount": decimal.Decimal("12.30"), "at": datetime.datetime(2024, 1, 2, 3, 4, 5)},
    list(range(300)), [(i, str(i)) for i in range(100)],
]


class Order:
    def __init__(self):
        self.id = 7


shared = [1]
again = [shared, shared]
cycle = []
cycle.append(cycle)
# Not decoded: bytes with a class.
opaque = [
    (Order(), "__main__.Order"),
    ([1, Order()], "__main__.Order"),
    (Order, "__main__.Order"),
    (uuid.UUID(int=1), "uuid.UUID"),
    (1j, "builtins.complex"),
    (decimal.Decimal("NaN"), "pickle"),
    (decimal.Decimal("-0"), "pickle"),
    (again, "pickle"),
    (cycle, "pickle"),
    (datetime.datetime, "pickle"),
    (datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))), "pickle"),
    (datetime.time(1, 2, tzinfo=UTC), "pickle"),
    ("\ud800", "pickle"),
    (print, "builtins.print"),
]


def large():
    for n in (999, 1000, 1001, 2000, 2001):
        yield list(range(n))
        yield {i: i for i in range(n)}
        yield {str(i): i for i in range(n)}
        yield set(range(n))
        yield frozenset(range(n))
        yield tuple(range(n))
    for n in (65530, 65535, 65536, 65537, 200000):
        yield "x" * n
        yield b"x" * n
        yield [1, "x" * n, 2, b"y" * n, {"k": "x" * n}]
        yield ["x" * (n - 70), 1, 2, 3]
    yield [str(i) * 20 for i in range(20000)]
    yield [{"name": str(i), "at": datetime.datetime(2024, 1, 1, 0, 0, i % 60), "amount": decimal.Decimal(i)} for i in range(5000)]
    yield [10**4000, -(10**4000)]
    deep = "leaf"
    for _ in range(150):
        deep = [deep]
    yield deep


def show(objects):
    for v in objects:
        last = None
        for protocol in range(2, 6):
            p = pickle.dumps(v, protocol)
            if p != last:
                print(protocol, p.hex(), to_json(v))
            last = p


sys.stdout.reconfigure(encoding="utf-8", newline="\n")
match sys.argv[1]:
    case "small":
        show(small)
        for v, name in opaque:
            for protocol in range(2, 6):
                p = pickle.dumps(v, protocol)
                print(protocol, p.hex(), classed(name, to_json(p).split('"@value":')[1][:-1]))
    case "large":
        show(large())
    case "load":
        for line in sys.stdin:
            print(to_json(pickle.loads(bytes.fromhex(line))))
