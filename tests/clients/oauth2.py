"""Signs in to a server with the official Python client 2.x. Argument: a plan (JSON); standard output: a report (JSON).

A person says yes to everything: the browser is the script `plan["browser"]`, and the client listens for what comes back from it.
"""

import asyncio
import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import driver
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

MODES = {"legacy": "legacy", "modern": "2026-07-28"}


class Kept:
    """What a client keeps: its tokens, and what the issuer knows it as."""

    def __init__(self, client=None):
        self.tokens, self.client = None, client

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Callback(BaseHTTPRequestHandler):
    """The page that the issuer leads back to."""

    def do_GET(self):
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.answered = AuthorizationCodeResult(**{name: query.get(name) for name in ("code", "state", "iss")})
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def person(plan, kept):
    server = HTTPServer(("127.0.0.1", 0), Callback)
    Thread(target=server.serve_forever, daemon=True).start()

    async def redirect(url):
        browser = await asyncio.create_subprocess_exec(*plan["browser"], url)
        assert await browser.wait() == 0, "the sign-in fails"

    async def answered():
        return server.answered

    metadata = OAuthClientMetadata(
        client_name="test",
        application_type="native",
        redirect_uris=[f"http://127.0.0.1:{server.server_port}/callback"],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    if plan["way"] == "known":
        known = {"client_id": "known", "token_endpoint_auth_method": "none", "issuer": plan["issuer"]}
        kept.client = OAuthClientInformationFull(redirect_uris=metadata.redirect_uris, **known)
    document = plan["document"] if plan["way"] == "document" else None
    return OAuthClientProvider(plan["url"], metadata, kept, redirect, answered, client_metadata_url=document)


def machine(plan, kept):
    return ClientCredentialsOAuthProvider(
        plan["url"], kept, "program", plan["secret"], scope=plan["scope"], issuer=plan["issuer"]
    )


async def main(plan):
    kept = Kept()
    auth = (machine if plan["way"] == "machine" else person)(plan, kept)
    async with httpx2.AsyncClient(auth=auth, timeout=60) as http:
        async with Client(streamable_http_client(plan["url"], http_client=http), mode=MODES[plan["mode"]]) as client:
            calls = [await driver.call(client, one["tool"], one["arguments"]) for one in plan["calls"]]
    print(json.dumps({"calls": calls, "client": kept.client and kept.client.client_id}))


asyncio.run(main(json.loads(sys.argv[1])))
