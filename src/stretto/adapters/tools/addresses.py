"""Is an address on the public Internet? In: an IP address as text. Out: yes, or why not.

An IPv6 address that carries an IPv4 address is judged by what it carries.
"""

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# By hand and not `is_global`, whose answer differs between releases of Python.
_CLOSED_V4 = {
    IPv4Network(network): what
    for network, what in {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's metadata",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
    }.items()
}
_OPEN_V6 = IPv6Network("2000::/3")  # all that is given out for global use
_CLOSED_V6 = {
    IPv6Network(network): what
    for network, what in {
        "::/128": "this host",
        "::1/128": "loopback",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "fec0::/10": "private",
        "ff00::/8": "multicast",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "3fff::/20": "for documentation",
    }.items()
}
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")  # IPv4-compatible, long deprecated
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


def closed_because(text: str) -> str | None:
    """Why this address may not be dialled, or None when it is public."""
    try:
        address = ip_address(text)
    except ValueError:
        return "no address"
    return next(filter(None, map(_closed, unwrapped(address))), None)


def unwrapped(address: Address) -> tuple[Address, ...]:
    """What must be public for it to be: the IPv4 addresses inside, if there are any."""
    if isinstance(address, IPv4Address):
        return (address,)
    number = int(address)
    if address.ipv4_mapped is not None:
        return (address.ipv4_mapped,)
    if address in _NAT64:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if address in _COMPATIBLE and number > 1:
        return (IPv4Address(number & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(number >> 80 & 0xFFFFFFFF),)
    if address in _TEREDO:
        server, client = number >> 64 & 0xFFFFFFFF, ~number & 0xFFFFFFFF
        return (IPv4Address(server), IPv4Address(client))
    return (address,)


def _closed(address: Address) -> str | None:
    if isinstance(address, IPv4Address):
        return next((what for net, what in _CLOSED_V4.items() if address in net), None)
    if address.scope_id is not None:
        return "link-local"
    said = next((what for net, what in _CLOSED_V6.items() if address in net), None)
    return said or (None if address in _OPEN_V6 else "reserved")
