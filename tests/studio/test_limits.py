"""Hostile requests, and the refusal each gets."""

from __future__ import annotations

import base64
import io
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from maskoban.studio import limits
from maskoban.studio.app import create_app
from maskoban.studio.limits import Access
from tests.studio.serving import PATIENCE, known_model, serving

ONE = "#####\n#@$.#\n#####"

# 230,000 letters that stand for five million.
RLE_BOMB = (f"{ONE}\n\n" + ("Solution:\n" + "64r" * 1500 + "\n\n") * 10) * 5
# The author above the first board is the author of every level.
AUTHOR_BOMB = "Author: " + "x" * 90_000 + "\n\n" + "#@#\n\n" * 9000


def digits_bomb() -> str:
    """An archive whose notes hold an integer of 5,000 digits, which Python refuses to read."""
    notes = np.frombuffer(b'{"level":' + b"1" * 5000 + b"}", np.uint8)
    np.savez_compressed(out := io.BytesIO(), boards=np.zeros((1, 1, 1), np.uint8), notes=notes)
    return base64.b64encode(out.getvalue()).decode()


# what is sent to which address; the status, and words of the sentence
HOSTILE: list[tuple[str, str, Any, int, str]] = [
    ("201 rows", "solve", {"board": "#\n" * 200 + "@"}, 422, "more than 200 rows"),
    ("a row of 201 cells", "solve", {"board": "#" * 201}, 422, "a row of 201 cells"),
    ("a huge board", "solve", {"board": "#" * 100_000}, 422, "at most 4224 characters"),
    ("an empty board", "solve", {"board": "   "}, 422, "an empty board"),
    ("a letter that is no tile", "solve", {"board": "#x#"}, 422, "should match pattern"),
    ("a number for a board", "solve", {"board": 7}, 422, "valid string"),
    ("no board", "solve", {}, 422, "board: Field required"),
    ("a list for a body", "solve", [1, 2], 422, "expected a JSON object as the body"),
    ("a field nobody knows", "solve", {"board": ONE, "depth": 3}, 422, "Extra inputs"),
    ("all the time there is", "solve", {"board": ONE, "seconds": 1e9}, 422, "less than or equal to 10"),
    ("no time", "solve", {"board": ONE, "seconds": 0}, 422, "greater than 0"),
    ("an unknown mode", "solve", {"board": ONE, "mode": "magic"}, 422, "'any', 'pushes' or 'effort'"),
    ("too many boards", "generate", {"count": 10**9}, 422, "less than or equal to 16"),
    ("text for a number", "generate", {"count": "4"}, 422, "valid integer"),
    ("a temperature of zero", "generate", {"temperature": 0}, 422, "greater than or equal to 0.1"),
    ("a negative seed", "generate", {"seed": -1}, 422, "greater than or equal to 0"),
    ("endless sweeps", "generate", {"sweeps": 1000}, 422, "less than or equal to 4"),
    ("an unknown sampler", "generate", {"sampler": "magic"}, 422, "expected one of best, plain, fast"),
    ("an unknown order", "generate", {"order": "magic"}, 422, "expected one of uniform"),
    ("a critic the model lacks", "generate", {"critic": True}, 422, "has no critic"),
    (
        "a board of a size no model can draw",
        "complete",
        {"board": "#?#"},
        422,
        "height: expected 5 to 16, got 1",
    ),
    ("a size no model can draw", "generate", {"size": "8x30"}, 422, "width: expected 5 to 16, got 30"),
    (
        "more boxes than fit",
        "generate",
        {"size": "5x5", "boxes": 5},
        422,
        "boxes: expected 1 to 4 on a 5x5 board",
    ),
    ("three walls to take away", "repair", {"board": ONE, "walls": 3}, 422, "less than or equal to 2"),
    ("an RLE bomb", "convert", {"content": "999999999#\n@$."}, 422, "more than 64 cells in a row"),
    ("a count of a million digits", "convert", {"content": "9" * 150_000 + "#"}, 422, "no level in it"),
    ("rows without end", "convert", {"content": "#@|" * 10_000}, 422, "no level in it"),
    ("an RLE bomb of solutions", "convert", {"content": RLE_BOMB}, 422, "letters once unpacked"),
    ("an author of every level", "convert", {"content": AUTHOR_BOMB}, 422, "letters once unpacked"),
    ("deep XML", "convert", {"content": "<a>" * 50_000}, 422, "content"),
    ("no level", "convert", {"content": "hello"}, 422, "no level in it"),
    ("no base64", "convert", {"content": "???", "encoding": "base64"}, 422, "not base64"),
    ("a broken archive", "convert", {"content": "UEsDBAAAAAA=", "encoding": "base64"}, 422, "content"),
    (
        "a number of 5,000 digits",
        "convert",
        {"content": digits_bomb(), "encoding": "base64"},
        422,
        "notes is not",
    ),
    ("neither content nor levels", "convert", {}, 422, "either content or levels"),
    ("an unknown format", "convert", {"content": ONE, "to": "pdf"}, 422, "'xsb', 'sok'"),
    ("steps that do not solve", "picture", {"board": ONE, "format": "gif", "solution": "l"}, 422, "step 0"),
    (
        "nothing to animate",
        "picture",
        {"board": "@ $.", "format": "gif", "solution": "r" * 2000},
        422,
        "too long",
    ),
]


@pytest.mark.parametrize(
    ("where", "sent", "status", "words"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_hostile_input_is_refused_with_a_sentence(
    known: str, where: str, sent: Any, status: int, words: str
) -> None:
    answer = httpx.post(f"{known}/api/{where}", json=sent, timeout=PATIENCE)
    assert answer.status_code == status, answer.text
    refusal = answer.json()
    assert set(refusal) == {"error", "message"}
    assert words in refusal["message"]


@pytest.mark.parametrize("board", ["#\n" * 64 + "@", "#" * 64 + "@"], ids=["65 rows", "65 columns"])
def test_a_board_that_is_not_searched_is_malformed(known: str, board: str) -> None:
    answer = httpx.post(f"{known}/api/solve", json={"board": board}, timeout=PATIENCE).json()
    assert answer["verdict"] == "malformed"
    assert answer["reason"].endswith("is larger than 64 x 64")


def raw(known: str, request: bytes) -> str:
    """What comes back for these very bytes."""
    place = urlsplit(known)
    assert place.hostname is not None
    with socket.create_connection((place.hostname, place.port or 80), timeout=PATIENCE) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65536):
            answer += part
    return answer.decode("latin-1")


def request(
    path: str, *headers: str, method: str = "GET", body: bytes = b"", host: str = "127.0.0.1"
) -> bytes:
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers, "", ""]
    return "\r\n".join(head).encode() + body


BODY = b'{"board": "@$."}'
JSON = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")

RAW: list[tuple[str, bytes, int, str]] = [
    ("another site's name (DNS rebinding)", request("/", host="evil.example"), 421, "wrong-host"),
    ("another site's name with our port", request("/api/health", host="evil.example:80"), 421, "wrong-host"),
    ("no host", b"GET / HTTP/1.0\r\n\r\n", 421, "wrong-host"),
    ("an origin that is no address", request("/api/solve", *JSON, "Origin: http://[", method="POST", body=BODY),
     403, "other sites"),
    ("a page of another site", request("/api/solve", *JSON, "Origin: http://evil.example", method="POST", body=BODY),
     403, "other sites"),
    ("a form of another site", request("/api/solve", *JSON, "Sec-Fetch-Site: cross-site", method="POST", body=BODY),
     403, "other sites"),
    ("a giant body, announced", request("/api/solve", "Content-Length: 99999999999", method="POST"), 413, "too-large"),
    ("a giant body, in pieces", request("/api/solve", "Content-Type: application/json", "Transfer-Encoding: chunked",
     method="POST", body=(b"10000\r\n" + b" " * 65536 + b"\r\n") * 20 + b"0\r\n\r\n"), 413, "too-large"),
    ("no JSON", request("/api/solve", "Content-Type: application/json", "Content-Length: 3", method="POST",
     body=b"{{{"), 422, "the body is no JSON: Expecting property name enclosed in double quotes at character 1"),
    ("JSON that does not say so", request("/api/solve", f"Content-Length: {len(BODY)}", method="POST", body=BODY),
     422, "sent with Content-Type: application/json"),
    ("no body at all", request("/api/solve", "Content-Length: 0", method="POST"), 422, "a JSON object as the body"),
    ("deep JSON", request("/api/solve", "Content-Type: application/json", "Content-Length: 200000", method="POST",
     body=b"[" * 200_000), 400, "bad-request"),
    ("not a number", request("/api/generate", "Content-Type: application/json", "Content-Length: 20", method="POST",
     body=b'{"temperature": NaN}'), 422, "finite number"),
    ("up and out of the page's folder", request("/../../etc/passwd"), 404, "not-found"),
    ("the same, disguised", request("/%2e%2e/%2e%2e/etc/passwd"), 404, "not-found"),
    ("the page's folder itself", request("/page/"), 404, "not-found"),
    ("a file of ours that is no page", request("/app.py"), 404, "not-found"),
    ("a null in the path", request("/index.html%00.js"), 404, "not-found"),
    ("a wrong method", request("/api/solve"), 405, "method-not-allowed"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sent", "status", "words"), [case[1:] for case in RAW], ids=[case[0] for case in RAW]
)
def test_hostile_requests_are_refused(known: str, sent: bytes, status: int, words: str) -> None:
    answer = raw(known, sent)
    assert answer.startswith(f"HTTP/1.1 {status} "), answer[:300]
    assert words in answer
    assert "default-src 'none'" in answer
    assert "access-control-allow-origin" not in answer.lower()


def test_the_page_may_load_nothing_inline_and_nothing_from_elsewhere(known: str) -> None:
    headers = httpx.get(known).headers
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert "http" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


def test_a_token_is_asked_for_where_one_is_set() -> None:
    with serving(create_app(known_model, Access("0.0.0.0", "secret"))) as address:
        asked = f"{address}/api/health"
        assert httpx.get(asked).status_code == 401
        assert httpx.get(asked, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx.get(asked, headers={"Authorization": "Bearer secret"}).status_code == 200
        with httpx.Client(base_url=address, follow_redirects=True) as browser:
            assert browser.get("/").status_code == 200  # the page itself holds no secret
            assert browser.get("/api/health").status_code == 401
            browser.get("/?token=wrong")
            assert browser.get("/api/health").status_code == 401
            assert "token" not in str(browser.get("/?token=secret").url)
            assert browser.get("/api/health").status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /api/health HTT",
        b"POST /api/solve HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{",
        b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /api/heal",
    ],
    ids=["nothing", "half a header", "half a body", "half a second request"],
)
def test_a_request_that_does_not_arrive_in_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.5)
    with serving(create_app(known_model)) as address:
        place = ("127.0.0.1", int(address.rpartition(":")[2]))
        with socket.create_connection(place, timeout=PATIENCE) as client:
            client.sendall(sent)
            while client.recv(4096):
                pass
