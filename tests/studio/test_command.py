"""The command that opens the studio."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.studio.serving import PATIENCE, eventually


@contextmanager
def command(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The studio as people start it, and the address it prints."""
    line = [sys.executable, "-m", "maskoban", "studio", "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"http://\S+", said)
        assert found, said
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="there Ctrl-C cannot be sent to one process alone")
def test_it_serves_until_ctrl_c_and_ends_without_a_word() -> None:
    with command() as (process, address):
        assert httpx.get(f"{address}api/health", timeout=PATIENCE).json()["status"] == "ok"
        assert "<title>maskoban</title>" in httpx.get(address, timeout=PATIENCE).text
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (0, "")


def test_beyond_this_machine_a_token_is_made() -> None:
    with command("--host", "0.0.0.0") as (_, address):
        place, _, token = address.partition("?token=")
        assert len(token) > 20
        assert httpx.get(f"{place}api/health", timeout=PATIENCE).status_code == 401
        known = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{place}api/health", headers=known, timeout=PATIENCE).status_code == 200


def test_the_printed_address_opens_whatever_the_token_is_made_of() -> None:
    with (
        command("--host", "0.0.0.0", "--token", "Zk3+/q== &%#") as (_, address),
        httpx.Client(timeout=PATIENCE) as browser,
    ):
        assert browser.get(address, follow_redirects=True).status_code == 200
        assert browser.get(f"{address.partition('?')[0]}api/health").status_code == 200


def test_a_token_that_no_header_can_carry_is_refused() -> None:
    line = [sys.executable, "-m", "maskoban", "studio", "--no-browser", "--port", "0", "--token", "ключ"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (
        2,
        "maskoban: --token: expected ASCII letters, because it is sent in a header\n",
    )


@pytest.mark.parametrize("token", ["", " "])
def test_beyond_this_machine_an_empty_token_is_refused(token: str) -> None:
    options = ["--no-browser", "--port", "0", "--host", "0.0.0.0", "--token", token]
    line = [sys.executable, "-m", "maskoban", "studio", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (
        2,
        "maskoban: --token: expected a token, because other machines can reach 0.0.0.0; got none\n",
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on open files there")
def test_clients_beyond_the_limit_of_open_files_get_one_sentence_and_leave_the_server_well() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, hard))  # the command inherits it
    try:
        with command() as (process, address):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            health = f"{address}api/health"
            assert eventually(lambda: httpx.get(health, timeout=PATIENCE).json()["model"] is not None)
            place = ("127.0.0.1", int(address.rpartition(":")[2].strip("/")))
            crowd = [socket.create_connection(place) for _ in range(100)]
            assert process.stderr is not None
            assert process.stderr.readline() == "maskoban studio: too many connections; new ones wait\n"
            for client in crowd:
                client.close()
            assert httpx.get(health, timeout=PATIENCE).status_code == 200
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=PATIENCE)
            assert said == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_port_that_is_taken_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = [sys.executable, "-m", "maskoban", "studio", "--no-browser", "--port", port]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 2
    assert re.fullmatch(rf"maskoban: cannot listen on 127\.0\.0\.1, port {port}: .*\n", done.stderr)
