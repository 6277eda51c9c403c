#!/usr/bin/env python3
"""What a connection costs in memory while nothing happens on it: resident memory of the server over the number of
connections, beyond what it has after a few of them have come and gone. Simulated engine, one step in a second.

    bench/idle_streams.py [STREAMS] [KIND …]          CHASQUI=build/bin/chasqui

kept-alive   a request was answered, and none is under way
streams      an SSE stream each: 256 have a slot and get a token with every step, the others wait for one and are told
             their place now and then; all have their headers, and read whatever comes
chats        the same by POST /v1/chat/completions with a conversation of 400 words
"""
import json
import os
import resource
import selectors
import socket
import sys
import time

import asking
import paired

SLOTS = 256
AT_ONCE = 128  # that are being opened
LIMIT_S = 240
WARM_UP = 600  # as many come and go first
FLAGS = ["--engine", "sim", "--sim-step", "1000", "--queue-requests", "100000", "--queue-tokens", "100000000",
         "--log-level", "error", "--cache-ram", "0"]


def request(method, path, body=None):
    text = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    return head.encode() + text


def requests_of(kind):
    """What each connection sends, and how its answer ends for it to count as open."""
    if kind == "kept-alive":
        return lambda i: request("GET", "/health"), b"}"
    if kind == "streams":
        return lambda i: request("POST", "/v1/completions", {
            "prompt": f"Stream {i}", "stream": True, "max_tokens": 800}), b"\r\n\r\n"
    if kind == "chats":
        text = asking.words(400, 1)
        return lambda i: request("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": f"{i} {text}"}], "stream": True, "max_tokens": 800}), b"\r\n\r\n"
    sys.exit(f"no such kind of connection: {kind}; there are kept-alive, streams and chats")


class Crowd:
    """Connections that are open, and read what comes."""

    def __init__(self, port):
        self.port = port
        self.selector = selectors.DefaultSelector()
        self.sockets = []
        self.opening = {}

    def open(self, count, make, end):
        until = time.monotonic() + LIMIT_S
        wanted = len(self.sockets) + count
        while len(self.sockets) < wanted or self.opening:
            while len(self.sockets) < wanted and len(self.opening) < AT_ONCE:
                each = socket.create_connection(("127.0.0.1", self.port), timeout=30)
                each.sendall(make(len(self.sockets)))
                each.setblocking(False)
                self.selector.register(each, selectors.EVENT_READ)
                self.sockets.append(each)
                self.opening[each] = b""
            self.read(0.1, end)
            if time.monotonic() > until:
                sys.exit(f"{len(self.opening)} connections got no answer in {LIMIT_S} s")

    def read(self, seconds, end=b""):
        for key, _ in self.selector.select(seconds):
            got = key.fileobj.recv(65536)
            if not got:
                sys.exit("the server closed a connection: " + self.opening.get(key.fileobj, b"").decode(errors="replace"))
            if key.fileobj not in self.opening:
                continue
            self.opening[key.fileobj] += got
            answer = self.opening[key.fileobj]
            if not answer.startswith(b"HTTP/1.1 200"[:len(answer)]):
                sys.exit("refused: " + answer.decode(errors="replace"))
            if end in answer:
                del self.opening[key.fileobj]

    def close(self):
        for each in self.sockets:
            self.selector.unregister(each)
            each.close()
        self.sockets.clear()


def memory(pid):
    """Resident bytes, all and those that are no file."""
    lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status", encoding="ascii"))
    return [int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "RssAnon")]


def state(server):
    return [server.metric(f"chasqui_requests_{name}") for name in ("running", "waiting")]


def settle(server, crowd, wanted, seconds=3):
    """Until the engine has so many requests, and a little longer; reads what comes."""
    end = time.monotonic() + 60
    while sum(state(server)) != wanted:
        crowd.read(0.1)
        if time.monotonic() > end:
            sys.exit(f"{sum(state(server)):.0f} requests in the engine instead of {wanted}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        crowd.read(0.1)


def measure(kind, count):
    make, end = requests_of(kind)
    slots = min(SLOTS, max(1, count // 2))
    with paired.Server("chasqui", None, slots, slots * 1024, *FLAGS) as server:
        pid = server.process.pid
        crowd = Crowd(server.port)
        asks = kind != "kept-alive"
        crowd.open(min(WARM_UP, count), make, end)
        settle(server, crowd, min(WARM_UP, count) * asks)
        crowd.close()
        settle(server, crowd, 0)
        before = memory(pid)
        started = time.monotonic()
        crowd.open(count, make, end)
        took = time.monotonic() - started
        settle(server, crowd, count * asks)
        during = memory(pid)
        running, _ = state(server)
        crowd.close()
        settle(server, crowd, 0)
        after = memory(pid)
    each = [(during[i] - before[i]) / count / 1024 for i in (0, 1)]
    paired.record("Memory of connections on which nothing happens", {
        f"{count:,} {kind}: KiB each": {"chasqui": each[0]}, f"{count:,} {kind}: seconds to open all": {"chasqui": took}})
    print(f"{kind:<12}{count:>9}{running:>9.0f}{each[0]:>14.2f}{each[1]:>14.2f}{before[0] / 2**20:>12.1f}"
          f"{during[0] / 2**20:>12.1f}{after[0] / 2**20:>12.1f}{took:>10.1f}", flush=True)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else paired.sized(10_000, 200)
    kinds = sys.argv[2:] or ["kept-alive", "streams", "chats"]
    for kind in kinds:
        requests_of(kind)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < count + 4200:
        sys.exit(f"{count} connections need {count + 4200} descriptors; the limit is {hard} (ulimit -Hn)")
    print(f"load average {os.getloadavg()[0]:.2f}")
    print(f"{'':<12}{'open':>9}{'in slots':>9}{'KiB each':>14}{'… no file':>14}{'MiB before':>12}{'MiB':>12}{'after':>12}{'s':>10}")
    for kind in kinds:
        measure(kind, count)


if __name__ == "__main__":
    main()
