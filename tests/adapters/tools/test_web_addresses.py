"""Which addresses are public, however they are spelled or wrapped."""

import pytest

from stretto.adapters.tools.web_client import why_closed

CLOSED = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1
127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 169.254.170.2 172.16.0.1 172.31.255.255
192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255
198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::7f00:1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254
::ffff:0:127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 64:ff9b:1::8.8.8.8
100::1 2001::1 2001:0:7f00:1:: 2001:0:808:808::f5ff:fffe 2001:2::1 2001:10::1 2001:20::1
2001:db8::1 2002:7f00:1:: 2002:a00:1:: 2002:c0a8:101::1 2002:a9fe:a9fe:: 3fff::1 3ffe::1%eth0
5f00::1 4000::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff02::1 ff0e::1
""".split()  # noqa: SIM905

OPEN = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0
223.255.255.255 2606:4700::1111 2a00:1450:4001::200e ::ffff:8.8.8.8 64:ff9b::808:808
2002:808:808::1 2001:0:808:808::f7f7:f7f7
""".split()  # noqa: SIM905


@pytest.mark.parametrize("address", CLOSED)
def test_an_address_that_is_not_public_is_closed(address: str) -> None:
    assert why_closed(address)


@pytest.mark.parametrize("address", OPEN)
def test_a_public_address_is_open(address: str) -> None:
    assert why_closed(address) is None


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "1.2.3.4.5", "8.8.8.8/8", "::g"])
def test_what_is_no_address_is_closed(text: str) -> None:
    assert why_closed(text) == "not an address"
