"""Mail through a real server: STARTTLS, a login, and rejections."""

import email
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any, cast

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from bench.measure import free_port
from tests.notify.certificate import made
from tests.notify.site import Site, reported, webhook
from tests.notify.web import web

USER, PASSWORD = "netkit", "a mail password"


class Mailbox:
    """Stores mails, and rejects one address."""

    def __init__(self) -> None:
        self.got: list[tuple[list[str], EmailMessage]] = []

    async def handle_RCPT(  # noqa: N802 (the name the library calls)
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        del server, session, options
        if address.startswith("gone@"):
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 (the same)
        del server, session
        mail = email.message_from_bytes(cast("bytes", envelope.content), policy=default)
        self.got.append((envelope.rcpt_tos, mail))
        return "250 taken"


def _login(_server: object, _session: object, _envelope: object, _mechanism: str, data: object) -> AuthResult:
    is_known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_known, handled=is_known)


@contextmanager
def server(mailbox: Mailbox, port: int, **options: Any) -> Iterator[None]:
    """Run a mail server for the length of a block."""
    controller = Controller(mailbox, hostname="127.0.0.1", port=port, ready_timeout=30, **options)
    controller.start()
    try:
        yield
    finally:
        controller.stop()


@pytest.fixture
def trust(tmp_path: Path) -> tuple[ssl.SSLContext, Path]:
    """The TLS context of a server, and the file to trust it by."""
    certificate, key = made(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def receiver(port: int, **more: Any) -> dict[str, Any]:
    address = {"host": "127.0.0.1", "port": port, "sender": "netkit@example.net", "to": ["noc@example.net"]}
    return {"name": "mail", "kind": "email", **address, **more}


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_mail_is_sent_over_tls_after_a_login(
    site: Site, trust: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch, security: str
) -> None:
    monkeypatch.setenv("NETKIT_SECRET_MAIL", PASSWORD)
    context, certificate = trust
    mailbox, port = Mailbox(), free_port()
    login = {"authenticator": _login, "auth_required": True}
    how = {"ssl_context": context, "auth_require_tls": False} if security == "tls" else {"tls_context": context}
    with server(mailbox, port, **login, **how):
        secret = {"user": USER, "password_secret": "MAIL", "ca_file": str(certificate)}
        site.write(receiver(port, security=security, **secret))
        site.check(is_bad=False)
        assert reported(site.check(is_bad=True)) == (1, "")
    ((to, mail),) = mailbox.got
    assert to == ["noc@example.net"]
    assert mail["Subject"] == "[netkit] small: 1 new; 1 cause open: 1 fail"
    assert "new       FAIL leaf01:swp1s0 load.errors: 900000 packets arrived damaged in 600 s" in mail.get_content()
    assert mail["Auto-Submitted"] == "auto-generated"


Refusal = tuple[str, Callable[[Path], dict[str, Any]]]


@pytest.mark.parametrize(
    ("complaint", "password", "more"),
    [
        ("its certificate is not trusted: self-signed certificate; name the certificates", PASSWORD, {}),
        ("it refuses the login; check user and password_secret", "wrong", {"ca_file": "HERE"}),
        ("it refuses gone@example.net; check to and sender", PASSWORD, {"ca_file": "HERE", "to": ["gone@example.net"]}),
    ],
)
def test_a_rejection_is_reported_without_the_password(
    site: Site,
    trust: tuple[ssl.SSLContext, Path],
    monkeypatch: pytest.MonkeyPatch,
    complaint: str,
    password: str,
    more: dict[str, Any],
) -> None:
    monkeypatch.setenv("NETKIT_SECRET_MAIL", password)
    context, certificate = trust
    mailbox, port = Mailbox(), free_port()
    files = {"ca_file": str(certificate)} if "ca_file" in more else {}
    with server(mailbox, port, tls_context=context, authenticator=_login, auth_required=True):
        site.write(receiver(port, user=USER, password_secret="MAIL", **{**more, **files}))  # noqa: S106 (its name)
        site.check(is_bad=False)
        done = site.check(is_bad=True)
    assert f"warning: notify: mail was not notified: {complaint}" in done.stderr
    assert password not in done.stderr
    assert mailbox.got == []


def test_addresses_accepted_beside_a_rejected_one_get_no_second_mail(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    mailbox, port = Mailbox(), free_port()
    with server(mailbox, port):
        site.write(receiver(port, security="none", to=["noc@example.net", "gone@example.net"]))
        site.check(is_bad=False)
        assert "mail: it refuses gone@example.net; the others received it" in site.check(is_bad=True).stderr
        assert reported(site.check(is_bad=True)) == (1, "")
    assert [to for to, _ in mailbox.got] == [["noc@example.net"]]


def test_a_server_without_starttls_is_sent_nothing(site: Site) -> None:
    mailbox, port = Mailbox(), free_port()
    with server(mailbox, port):
        site.write(receiver(port))
        site.check(is_bad=False)
        assert "mail was not notified: it does not support STARTTLS or login" in site.check(is_bad=True).stderr
    assert mailbox.got == []


def test_a_password_that_mail_cannot_encode_does_not_affect_the_others(
    site: Site, trust: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETKIT_SECRET_MAIL", "grün und blau")
    context, certificate = trust
    port = free_port()
    with server(Mailbox(), port, tls_context=context, authenticator=_login, auth_required=True), web() as other:
        secret = {"user": USER, "password_secret": "MAIL", "ca_file": str(certificate)}
        site.write(receiver(port, **secret), webhook(other.url))
        site.check(is_bad=False)
        done = site.check(is_bad=True)
    what = "its host, user, password or an address has characters that mail cannot carry"
    why = f"{what}; write them in ASCII; see notify.yaml"
    assert reported(done) == (1, f"warning: notify: mail was not notified: {why}; the next run tries again\n")
    assert len(other.got) == 1


class Rude(SMTP):
    """Accepts mails, and answers QUIT with an error."""

    async def smtp_QUIT(self, arg: str | None) -> None:  # noqa: N802 (the name the library calls)
        del arg
        await self.push("451 not now")


class RudeController(Controller):
    def factory(self) -> SMTP:
        return Rude(self.handler, **self.SMTP_kwargs)


def test_an_accepted_mail_is_not_sent_again_whatever_the_server_answers_to_quit(site: Site) -> None:
    mailbox, port = Mailbox(), free_port()
    controller = RudeController(mailbox, hostname="127.0.0.1", port=port, ready_timeout=30)
    controller.start()
    try:
        site.write(receiver(port, security="none"))
        site.check(is_bad=False)
        assert reported(site.check(is_bad=True)) == (1, "")
    finally:
        controller.stop()
    assert len(mailbox.got) == 1


def test_an_address_rejected_temporarily_for_too_long_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netkit.notify.delivery.SHORTEST_S", 0.0)
    port = free_port()
    with server(Mailbox(), port):
        site.write(receiver(port, security="none", to=["gone@example.net"]))
        site.check(is_bad=False)
        for _ in range(2):
            assert (
                "it refuses gone@example.net; check to and sender; the next run tries again"
                in site.check(is_bad=True).stderr
            )
        assert "these are dropped: it refuses gone@example.net" in site.check(is_bad=True).stderr
