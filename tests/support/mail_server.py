"""A small SMTP server that keeps every mail it is given; or refuses them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage


class MailServer:
    """Speaks as much of RFC 5321 as smtplib needs."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self._refuses = refuses
        self.address = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := (await reader.readline()).decode().strip():
            verb = line.split(":")[0].upper()
            if verb == "DATA":
                writer.write(b"354 go on\r\n")
                text = await reader.readuntil(b"\r\n.\r\n")
                mail = message_from_bytes(text[:-5], policy=policy.default)
                assert isinstance(mail, EmailMessage)
                self.mails.append(mail)
            elif verb == "RCPT TO":
                self.recipients.append(line.partition(":")[2].strip())
            refused = self._refuses and verb == "MAIL FROM"
            answers = {"QUIT": b"221 bye\r\n"}
            writer.write(b"550 no\r\n" if refused else answers.get(verb, b"250 well\r\n"))
            await writer.drain()
            if verb == "QUIT":
                break
        writer.close()


@asynccontextmanager
async def mail_server(*, refuses: bool = False):
    """A server on a free port, until the end of the block."""
    server = MailServer(refuses=refuses)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    host, port = listening.sockets[0].getsockname()
    server.address = f"{host}:{port}"
    async with listening:
        yield server
