#!/usr/bin/env python3
"""What clients cost that do not behave: bench/slow_clients.py [slow|deaf|resets …]. Exit status 1 when a promise is broken.

slow    10,000 connections that send their headers one byte a second: what that does to the first token of a client who
        behaves, and whether all are closed in time
deaf    200 clients that ask and never read: the memory that they cost
resets  5,000 clients that reset their connection at any moment: what is left of them
"""
import contextlib
import json
import multiprocessing
import os
import random
import resource
import selectors
import socket
import statistics
import struct
import sys
import time

import paired
from promise_figures import DEMO, at_least, at_most, broken, held

SLOW = int(os.environ.get("SLOW", "10000"))
DEAF = 200
RESETS = 5000
HEADER_S = 10  # header_seconds of docs/limits.md …
LINGER_S = 2  # … and linger_seconds
HEADERS = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 4096


def request(path, body, headers=b""):
    text = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s" % (path, len(text), headers, text)


def chat(words, **fields):
    return request(b"/v1/chat/completions", {"stream": True, "messages": [{"role": "user", "content": words}], **fields})


def first_token_s(port):
    """A client who behaves: from its connection to the first event of its stream."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(chat("What is Chasqui?", max_tokens=1))
        seen = b""
        while b"data: " not in seen:
            piece = client.recv(65536)
            if not piece:
                sys.exit(f"a client who behaves was cut: {seen!r}")
            seen += piece
    return time.monotonic() - begun


class Slow:
    """Keeps `count` connections open, each of which has a byte to say every second, until it is told to stop; then it
    only waits until the server has closed all of them."""

    def __init__(self, port, count):
        self.address, self.count = ("127.0.0.1", port), count
        self.selector = selectors.EpollSelector()
        self.open, self.opened, self.closed = {}, 0, 0
        self.longest_s = 0

    def connect(self):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(self.address)
        self.open[client] = [time.monotonic(), 0]
        self.opened += 1
        self.selector.register(client, selectors.EVENT_READ)

    def forget(self, client):
        begun, _ = self.open.pop(client)
        self.longest_s = max(self.longest_s, time.monotonic() - begun)
        self.closed += 1
        self.selector.unregister(client)
        client.close()

    def read(self, until):
        while (left := until - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                try:
                    if not key.fileobj.recv(4096):
                        self.forget(key.fileobj)
                except BlockingIOError:
                    pass
                except OSError:
                    self.forget(key.fileobj)

    def say_a_byte(self, clients):
        for client in clients:
            if (state := self.open.get(client)) is None:
                continue
            with contextlib.suppress(OSError):
                client.send(HEADERS[state[1]:state[1] + 1])
                state[1] += 1

    def run(self, ready, stop):
        os.nice(5)
        parts = 20  # of a second
        turn = 0
        while not stop.is_set():
            end = time.monotonic() + 1 / parts
            for _ in range(min(self.count // 50, self.count - len(self.open))):
                self.connect()
            self.say_a_byte([client for client in list(self.open) if client.fileno() % parts == turn % parts])
            if len(self.open) == self.count:
                ready.set()
            self.read(end)
            turn += 1
        begun = time.monotonic()
        while self.open and time.monotonic() - begun < 3 * HEADER_S:
            self.say_a_byte([client for client in list(self.open) if client.fileno() % parts == turn % parts])
            self.read(time.monotonic() + 1 / parts)
            turn += 1
        return {"opened": self.opened, "left": len(self.open), "longest": self.longest_s}


def slow_process(port, count, ready, stop, results):
    results.put(Slow(port, count).run(ready, stop))


def measure(port, seconds):
    end = time.monotonic() + seconds
    times = []
    while time.monotonic() < end:
        times.append(first_token_s(port))
        time.sleep(0.02)
    return times


def slow():
    """Headers one byte a second, on thousands of connections at once."""
    # One compute thread, so that on two cores the others do not take what is being measured.
    with paired.Server("chasqui", DEMO, 4, 4 * 1024, "-t", "1", "--cache-ram", "0") as server:
        descriptors = os.path.join("/proc", str(server.process.pid), "fd")
        before = len(os.listdir(descriptors))
        measure(server.port, 2)
        ready, stop, results = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
        crowd = multiprocessing.Process(target=slow_process, args=(server.port, SLOW, ready, stop, results))
        without = measure(server.port, 6)
        crowd.start()
        if not ready.wait(60):
            sys.exit("the slow connections could not be opened")
        open_at_once = server.metric("chasqui_http_connections_open")
        within = measure(server.port, 12)
        stop.set()
        crowd_said = results.get(timeout=60)
        crowd.join()
        without += measure(server.port, 6)
        at_least("slow connections open at once", int(open_at_once), int(SLOW * 0.99))
        held("… opened in all", crowd_said["opened"], "(shown)", True)
        held("time to a first token without them, median, ms", 1000 * statistics.median(without), "(shown)", True)
        held("… with them", 1000 * statistics.median(within), "(shown)", True)
        at_most("… with them, times that without", statistics.median(within) / statistics.median(without), 1.2)
        held("not closed in time", crowd_said["left"], "0", crowd_said["left"] == 0)
        at_most("the longest that one was open, s", crowd_said["longest"], HEADER_S + LINGER_S + 2)
        left = len(os.listdir(descriptors)) - before
        held("descriptors that are left over", left, "0", left <= 0)


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


def deaf():
    """Clients that ask for much and never read any of it."""
    cap_kib = 256 + 64  # unread_bytes, and pipelined_bytes, of docs/limits.md
    # A long name makes long chunks: buffers fill sooner.
    flags = ("--engine", "sim", "--alias", "name" * 100, "--timeout", "60")
    with paired.Server("chasqui", DEMO, DEAF // 2, 400 * 1024, *flags) as server:
        first_token_s(server.port)
        before = resident_kib(server.process.pid)
        clients = []
        for i in range(DEAF):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            stream = chat(f"go on, {i}", max_tokens=4000, ignore_eos=True)
            pipelined = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
            client.sendall(stream if i % 2 == 0 else pipelined)
            clients.append(client)
        most = before
        end = time.monotonic() + 120
        while time.monotonic() < end:
            most = max(most, resident_kib(server.process.pid))
            if server.metric("chasqui_requests_running") + server.metric("chasqui_requests_waiting") == 0:
                break
            time.sleep(0.1)
        cut = server.metric("chasqui_slow_clients_total")
        at_most("resident memory for each of them at most, KiB", (most - before) / DEAF, cap_kib)
        at_least("streams that were cut at their cap", int(cut), DEAF // 2)
        for client in clients:
            client.close()
        still = first_token_s(server.port)
        held("first token of a client who behaves, afterwards, ms", 1000 * still, "(shown)", True)


def reset(client):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def resets():
    """Connections that are reset at any moment: while they ask, wait, read."""
    dice = random.Random(1)
    with paired.Server("chasqui", DEMO, 4, 4 * 1024, "-t", "1") as server:
        first_token_s(server.port)
        proc = f"/proc/{server.process.pid}"
        gauges = ("requests_running", "requests_waiting", "kv_slots_used", "kv_cells_used", "http_body_bytes")

        def used():
            left = {name: server.metric(f"chasqui_{name}") for name in gauges}
            return {**left, "descriptors": len(os.listdir(proc + "/fd")), "threads": len(os.listdir(proc + "/task"))}

        before = used()
        whole = chat("go on", max_tokens=200, ignore_eos=True)
        waiting = []
        for _ in range(RESETS):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            client.sendall(whole[:dice.randrange(len(whole))] if dice.random() < 0.3 else whole)
            waiting.append(client)
            if len(waiting) > dice.randrange(1, 48):
                reset(waiting.pop(dice.randrange(len(waiting))))
        for client in waiting:
            reset(client)
        end = time.monotonic() + 60
        while (after := used()) != before and time.monotonic() < end:
            time.sleep(0.05)
        for name, value in after.items():
            held(f"{name}, over what there was before", value - before[name], "0", value == before[name])
        at_least("clients that were seen to leave", int(server.metric("chasqui_http_clients_gone_total")), RESETS // 4)


CHECKS = {each.__name__: each for each in (slow, deaf, resets)}

if __name__ == "__main__":
    # Each client is a descriptor here, and another one in the server.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for wanted in sys.argv[1:] or CHECKS:
        if wanted not in CHECKS:
            sys.exit(f"{wanted}: no such check; there are {', '.join(CHECKS)}")
        print(f"{wanted}: {CHECKS[wanted].__doc__}", flush=True)
        CHECKS[wanted]()
    sys.exit(1 if broken else 0)
