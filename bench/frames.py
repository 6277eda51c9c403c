#!/usr/bin/env python3
"""What a token costs as a frame on the local socket, and as an SSE event on TCP and on a Unix socket: CPU time of the
server's loop, bytes, and the time from a question to its first token and to an answer that needs no model. The model is
simulated, so that nothing but delivery costs; rounds alternate, and medians are printed.

    bench/frames.py [ROUNDS]          CHASQUI=build/bin/chasqui
"""
import json
import os
import re
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import paired

CHASQUI = paired.CHASQUI
STREAMS, TOKENS, QUESTIONS = paired.sized((32, 500, 300), (4, 20, 10))


def connect(address):
    if isinstance(address, str):
        connection = socket.socket(socket.AF_UNIX)
    else:
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.connect(address)
    return connection


def request_of(tokens):
    return {"prompt": "a b c", "max_tokens": tokens, "ignore_eos": True, "stream": True, "temperature": 0}


class Frames:
    def __init__(self, address):
        self.address = address

    def ask(self, connection, tokens, id=1):
        body = json.dumps({"id": id, **request_of(tokens)}).encode()
        connection.sendall(struct.pack("<I", len(body)) + body)

    def open_streams(self, streams):
        """Connections, and how many streams end on each."""
        connection = connect(self.address)
        for id in range(streams):
            self.ask(connection, TOKENS, id)
        return [connection], streams

    def ask_health(self, connection):
        body = b'{"id":1,"event":"health"}'
        connection.sendall(struct.pack("<I", len(body)) + body)

    token = b'"event":"token"'
    end = b'"event":"eos"'


class Events:
    def __init__(self, address):
        self.address = address

    def ask(self, connection, tokens, id=1):
        body = json.dumps(request_of(tokens)).encode()
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def open_streams(self, streams):
        connections = [connect(self.address) for _ in range(streams)]
        for connection in connections:
            self.ask(connection, TOKENS)
        return connections, 1

    def ask_health(self, connection):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")

    token = b'"text":"'
    end = b"\r\n0\r\n\r\n"


def read_all(connections, end, count):
    """Reads until `end` has come `count` times on each connection, and says how many bytes that were."""
    size = 0
    ready = selectors.DefaultSelector()
    left = {connection: [count, b""] for connection in connections}
    for connection in connections:
        ready.register(connection, selectors.EVENT_READ)
    while left:
        for key, _ in ready.select():
            piece = key.fileobj.recv(1 << 20)
            if not piece:
                sys.exit("the server has closed the connection")
            size += len(piece)
            state = left[key.fileobj]
            seen = state[1] + piece
            state[0] -= seen.count(end)
            state[1] = seen[-(len(end) - 1):]
            if state[0] <= 0:
                ready.unregister(key.fileobj)
                del left[key.fileobj]
    return size


def cpu_seconds(pid):
    """Of the loop's thread, to the nanosecond: it delivers, the worker only simulates."""
    with open(f"/proc/{pid}/task/{pid}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


def stream_cost(door, pid, streams):
    """CPU time and bytes of one token."""
    before = cpu_seconds(pid)
    connections, ends = door.open_streams(streams)
    size = read_all(connections, door.end, ends)
    cost = cpu_seconds(pid) - before
    for connection in connections:
        connection.close()
    return cost / (streams * TOKENS), size / (streams * TOKENS)


def median_wait(connection, ask, first, last):
    """From the question to the bytes `first`; the next question comes after the bytes `last`."""
    waits = []
    for _ in range(QUESTIONS):
        start = time.perf_counter()
        ask(connection)
        received = b""
        while first not in received:
            received += connection.recv(65536)
        waits.append(time.perf_counter() - start)
        while last not in received:
            received += connection.recv(65536)
    return statistics.median(waits)


def measure(door, pid):
    alone, _ = stream_cost(door, pid, 1)
    together, size = stream_cost(door, pid, STREAMS)
    with connect(door.address) as connection:
        first = median_wait(connection, lambda to: door.ask(to, 1), door.token, door.end)
    with connect(door.address) as connection:
        health = median_wait(connection, door.ask_health, b'"ok"', b'"ok"')
    return {"CPU µs/token, 1 stream": alone * 1e6, f"… {STREAMS} streams": together * 1e6, "bytes/token": size,
            "first token µs": first * 1e6, "health µs": health * 1e6}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        frames, http = folder + "/frames.sock", folder + "/http.sock"
        server = subprocess.Popen(
            [CHASQUI, "serve", "--engine", "sim", "-np", str(STREAMS), "-c", str(STREAMS * 2 * TOKENS), "--port", "0",
             "--unix-socket", http, "--socket", frames, "--tenant-requests", "0", "--log-level", "error"],
            stdout=subprocess.PIPE, text=True)
        try:
            port = None
            for line in server.stdout:
                port = port or re.search(r"http://127.0.0.1:(\d+)", line)
                if line.startswith("serving "):
                    break
            doors = {"frames": Frames(frames), "SSE, Unix socket": Events(http),
                     "SSE, TCP": Events(("127.0.0.1", int(port[1])))}
            results = {name: [] for name in doors}
            print(f"load average {os.getloadavg()[0]:.1f}; {STREAMS} streams of {TOKENS} tokens, "
                  f"{QUESTIONS} questions, {rounds} rounds", file=sys.stderr)
            for _ in range(rounds):
                for name, door in doors.items():
                    results[name].append(measure(door, server.pid))
        finally:
            server.terminate()
            server.wait()
    columns = list(results["frames"][0])
    print("| | " + " | ".join(columns) + " |\n|---|" + "---:|" * len(columns))
    for name, rows in results.items():
        paired.record("What a token costs at each door", {
            f"{name}: {column}": {"chasqui": statistics.median(row[column] for row in rows)} for column in columns})
        print(f"| {name} | " + " | ".join(f"{statistics.median(row[c] for row in rows):.1f}" for c in columns) + " |")


main()
