"""IP addresses of both versions. They are represented as text, IPv6 in its short form."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from sqlglot import exp

from coprlake.errors import UsageError
from coprlake.language.functions.array_functions import array_function, by_distinct
from coprlake.language.functions.registry import FUNCTIONS, function, internal
from coprlake.language.functions.text.text_matching import constant_at, patterns_of
from coprlake.language.plan import Apply
from coprlake.language.sql.dialect import Dialect
from coprlake.language.types import STRING

GROUP: Final = "network"
_ADDRESSES: Final = 'data record(a = "10.0.0.1"), record(a = "8.8.8.8"), record(a = "fe80::1"), record(a = "x") | '

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Sql = Sequence[exp.Expression]

_PRIVATE: Final = tuple(map(ipaddress.ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")))


def parse_address(text: str) -> Address | None:
    """Parse an address; None if it is not valid. IPv6 zones are local to one machine and not accepted."""
    if "%" in text:
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def addresses(texts: pa.Array) -> pa.Array:
    """Addresses in canonical form; null if not valid."""
    return by_distinct(texts, pa.string(), lambda text: _shown(parse_address(text)))


def _shown(address: Address | None) -> str | None:
    return None if address is None else str(address)


def address_keys(texts: pa.Array) -> pa.Array:
    """Keys that compare as the addresses do, IPv4 before IPv6; null if not valid."""
    return by_distinct(texts, pa.string(), lambda text: _key(parse_address(text)))


def _key(address: Address | None) -> str | None:
    return None if address is None else f"{address.version}{int(address):0{address.max_prefixlen // 4}x}"


def _ip_key(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(address_keys, (pa.string(),), pa.string()), args[0])


FUNCTIONS["ip key"] = internal("ip key", _ip_key, STRING)


def _to_ip(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    return d.apply(array_function(addresses, (pa.string(),), pa.string()), args[0])


for _name, _group, _doc in (
    ("ip", GROUP, "The string as an IP address, or null if it is not a valid one."),
    ("toIp", "conversion", "The string as an IP address, or null if it is not a valid one."),
):
    function(
        f"{_name}(value: string|ip) -> ip",
        _doc,
        group=_group,
        example=f'data record(a = "2001:DB8:0::1", b = "317.0.0.1") | fields x = {_name}(a), y = {_name}(b)',
        gives=[{"x": "2001:db8::1", "y": None}],
    )(_to_ip)


# Kinds of addresses


def is_kind(texts: pa.Array, kind: str = "private") -> pa.Array:
    """Whether each address is of a kind; null if not valid."""
    test = _KINDS[kind]

    def of_one(text: str) -> bool | None:
        address = parse_address(text)
        return None if address is None else test(address)

    return by_distinct(texts, pa.bool_(), of_one)


def is_version(texts: pa.Array, version: int = 0) -> pa.Array:
    """Whether each text is an address of a version, or of any if it is 0."""

    def of_one(text: str) -> bool:
        address = parse_address(text)
        return address is not None and version in (0, address.version)

    return by_distinct(texts, pa.bool_(), of_one)


_KINDS: Final[dict[str, Callable[[Address], bool]]] = {
    "private": lambda address: any(address in network for network in _PRIVATE),
    "loopback": lambda address: address.is_loopback,
    "link local": lambda address: address.is_link_local,
    "public": lambda address: address.is_global and not address.is_multicast,
}


def _kind(name: str, kind: str, doc: str, gives: Sequence[bool | None]) -> None:
    function(
        f"{name}(address: string|ip) -> boolean",
        f"Whether the address is {doc}; null if it is not a valid address.",
        group=GROUP,
        example=f"{_ADDRESSES}fields x = {name}(a)",
        gives=[{"x": value} for value in gives],
    )(lambda d, node, args: d.apply(array_function(is_kind, (pa.string(),), pa.bool_(), kind=kind), args[0]))


def _version(name: str, version: int, doc: str, gives: Sequence[bool]) -> None:
    function(
        f"{name}(value: string|ip) -> boolean",
        f"Whether the value is {doc}.",
        group=GROUP,
        example=f"{_ADDRESSES}fields x = {name}(a)",
        gives=[{"x": value} for value in gives],
    )(lambda d, node, args: d.apply(array_function(is_version, (pa.string(),), pa.bool_(), version=version), args[0]))


_kind("ipIsPrivate", "private", "private (RFC 1918, RFC 4193)", [True, False, False, None])
_kind("ipIsLoopback", "loopback", "a loopback address, such as 127.0.0.1", [False, False, False, None])
_kind("ipIsLinkLocal", "link local", "link-local, such as 169.254.0.1", [False, False, True, None])
_kind("ipIsPublic", "public", "public: not private, local or reserved", [False, True, False, None])
_version("isIp", 0, "an IP address", [True, True, True, False])
_version("isIpV4", 4, "an IPv4 address", [True, True, False, False])
_version("isIpV6", 6, "an IPv6 address", [False, False, True, False])


# Networks


def parse_network(text: str) -> Network:
    """Parse a network; a single address is a network of one.

    Raises:
        UsageError: the text is neither.
    """
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a valid network or address; write, for example, 10.0.0.0/8") from error


def _check_network(value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"{value!r} is not a valid network or address; write, for example, 10.0.0.0/8")
    parse_network(value)


@function(
    "ipIn(address: string|ip, networks: const any...) -> boolean",
    "Whether the address equals one of the addresses or is in one of the networks; null if it is not a valid address.",
    group=GROUP,
    example=_ADDRESSES + 'fields x = ipIn(a, "10.0.0.0/8", "fe80::/10"), y = ipIn(a, {"8.8.8.8"})',
    gives=[{"x": True, "y": False}, {"x": False, "y": True}, {"x": True, "y": False}, {"x": None, "y": None}],
    checks={"networks": _check_network},
)
def _ip_in(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    networks = tuple(str(parse_network(text)) for text in patterns_of(node.arguments[1:]))
    return d.apply(array_function(is_in, (pa.string(),), pa.bool_(), networks=networks), args[0])


def is_in(texts: pa.Array, networks: tuple[str, ...] = ()) -> pa.Array:
    """Whether each address is in one of the networks; null if not valid."""
    parsed = [parse_network(text) for text in networks]

    def of_one(text: str) -> bool | None:
        address = parse_address(text)
        return None if address is None else any(address in network for network in parsed)

    return by_distinct(texts, pa.bool_(), of_one)


def _check_bits(most: int) -> Callable[[int], None]:
    def check(bits: int) -> None:
        if not 0 <= bits <= most:
            raise UsageError(f"the number of bits must be from 0 to {most}, found {bits}")

    return check


@function(
    "ipMask(address: string|ip, bits: const long, ipv6Bits: const long = null) -> ip",
    "The address with only its first bits kept and the others set to 0: `bits` of them for "
    "IPv4, `ipv6Bits` for IPv6, which defaults to `bits`. Null if it is not a valid address.",
    group=GROUP,
    example=_ADDRESSES + "fields x = ipMask(a, 24), y = ipMask(a, 8, ipv6Bits: 10)",
    gives=[
        {"x": "10.0.0.0", "y": "10.0.0.0"},
        {"x": "8.8.8.0", "y": "8.0.0.0"},
        {"x": "fe80::", "y": "fe80::"},
        {"x": None, "y": None},
    ],
    checks={"bits": _check_bits(128), "ipv6Bits": _check_bits(128)},
)
def _ip_mask(d: Dialect, node: Apply, args: Sql) -> exp.Expression:
    bits, more = constant_at(node, 1), constant_at(node, 2)
    return d.apply(
        array_function(masked, (pa.string(),), pa.string(), bits=bits, ipv6_bits=bits if more is None else more),
        args[0],
    )


def masked(texts: pa.Array, bits: int = 32, ipv6_bits: int = 128) -> pa.Array:
    """Each address with only its first bits kept; null if not valid."""

    def of_one(text: str) -> str | None:
        address = parse_address(text)
        if address is None:
            return None
        kept = min(bits if address.version == 4 else ipv6_bits, address.max_prefixlen)
        return str(ipaddress.ip_network((address, kept), strict=False).network_address)

    return by_distinct(texts, pa.string(), of_one)
