"""The same over TLS: trusted certificates only, and connections are kept there too."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest

from stretto.ports.model import ModelFailed
from stretto.testing.openai_script import Hang, Said
from stretto.testing.openai_server import OpenAIServer
from support.model_questions import ask, model_at

x509 = pytest.importorskip("cryptography.x509", reason="cryptography makes the certificate")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "stretto")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(private + built.public_bytes(serialization.Encoding.PEM))
    return file


def server_context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_calls_over_tls_share_a_connection(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def story() -> None:
        async with OpenAIServer(Said("x" * 500_000), tls=server_context(certificate)) as server:
            for _ in range(3):
                response = await ask(model_at(server))
                assert response.text == "x" * 500_000
            assert server.connections == 1

    asyncio.run(story())


def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Path) -> None:
    async def story() -> None:
        async with OpenAIServer(tls=server_context(certificate)) as server:
            with pytest.raises(ModelFailed, match=r"cannot connect.*[Cc]ertificate"):
                await ask(model_at(server))
            assert server.requests == []

    asyncio.run(story())


def test_a_cancelled_call_ends_at_once_over_tls_too(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))

    async def story() -> None:
        async with OpenAIServer(Hang(), tls=server_context(certificate)) as server:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await ask(model_at(server))
            for _ in range(100):
                if server.dropped:
                    return
                await asyncio.sleep(0.02)
            raise AssertionError("the connection was kept")

    asyncio.run(story())
