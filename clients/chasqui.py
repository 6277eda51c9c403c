#!/usr/bin/env python3
"""A client of Chasqui's local socket (docs/protocol.md), with nothing but Python's standard library.

    from chasqui import Client
    with Client("/run/chasqui.sock") as client:
        for event in client.generate(messages=[{"role": "user", "content": "What is Chasqui?"}]):
            if event["event"] == "token":
                print(event["text"], end="", flush=True)

Any number of requests may run at once: start() sends one and gives its id; events(id) gives what is said to it. One
thread at a time; Client is not locked.

    chasqui.py --socket /run/chasqui.sock What is Chasqui?
    echo 'a question' | chasqui.py --socket /run/chasqui.sock
    chasqui.py --socket /run/chasqui.sock --command metrics
"""
import collections
import json
import os
import signal
import socket
import struct
import sys

ENDS = ("eos", "error", "result")


class ChasquiError(Exception):
    """An `error` event: code, message, and param and retry_after_ms where the server gave them."""

    def __init__(self, event):
        super().__init__(f'{event.get("code")}: {event.get("message")}')
        self.code = event.get("code")
        self.message = event.get("message")
        self.param = event.get("param")
        self.retry_after_ms = event.get("retry_after_ms")


class Client:
    """With a timeout in seconds, whatever waits for the server longer raises socket.timeout."""

    def __init__(self, path, timeout=None):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        self._socket.connect(path)
        self._received = bytearray()
        self._waiting = {}  # id -> events that have not been taken yet
        self._last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Cancels what still runs."""
        self._socket.close()

    # Frames.

    def send(self, message):
        body = json.dumps(message, ensure_ascii=False).encode()
        try:
            self._socket.sendall(struct.pack("<I", len(body)) + body)
        except socket.timeout:
            self.close()  # a part of the frame may be sent, which nothing can follow
            raise

    def receive(self):
        """The next event of any request."""
        self._need(4)
        (length,) = struct.unpack_from("<I", self._received)
        self._need(4 + length)
        event = json.loads(self._received[4:4 + length])
        del self._received[:4 + length]
        return event

    def _need(self, size):
        """Nothing is taken before all is here: after a timeout the next call goes on with the same frame."""
        while len(self._received) < size:
            piece = self._socket.recv(65536)
            if not piece:
                raise ConnectionError("the server has closed the connection")
            self._received += piece

    # Requests.

    def start(self, event=None, id=None, **fields):
        """Sends a request or command; its events come from events(id)."""
        if id is None:
            self._last_id += 1
            id = f"py-{self._last_id}"
        message = {"id": id, **fields}
        if event is not None:
            message["event"] = event
        self._waiting[id] = collections.deque()
        self.send(message)
        return id

    def events(self, id):
        """All events of one request, the last one included. An error is raised as ChasquiError. Leaving the loop before
        its end cancels the request, and so does a timeout."""
        over = False
        try:
            while not over:
                event = self._next(id)
                over = event["event"] in ENDS
                if event["event"] == "error":
                    raise ChasquiError(event)
                yield event
        except socket.timeout:
            raise
        except OSError:
            over = True  # there is no connection to cancel on
            raise
        finally:
            self._waiting.pop(id, None)
            if not over:
                self._cancel_if_open(id)

    def _next(self, id):
        queue = self._waiting[id]
        while not queue:
            event = self.receive()
            if event["id"] is None:  # about a frame that the server could not read
                raise ChasquiError(event)
            if event["id"] in self._waiting:
                self._waiting[event["id"]].append(event)
        return queue.popleft()

    def cancel(self, id):
        self.send({"id": id, "event": "cancel"})

    def _cancel_if_open(self, id):
        try:
            if self._socket.fileno() >= 0:
                self.cancel(id)
        except OSError:
            pass  # the server has gone, and the request with it

    def generate(self, **fields):
        return self.events(self.start(**fields))

    def text(self, **fields):
        """The whole answer."""
        (event,) = [event for event in self.generate(stream=False, **fields) if event["event"] == "eos"]
        return event["text"]

    def command(self, name, **fields):
        """What a command gives: health, metrics, props, session.create …"""
        (event,) = list(self.events(self.start(event=name, **fields)))
        return event["result"]


def ask(client, question, fields):
    id = client.start(messages=[{"role": "user", "content": question}], **fields)
    interrupted = signal.signal(signal.SIGINT, lambda *_: client.cancel(id))
    try:
        for event in client.events(id):
            if event["event"] == "token":
                sys.stdout.write(event["text"])
                sys.stdout.flush()
        print()
    finally:
        signal.signal(signal.SIGINT, interrupted)


def utf8(argument):
    """Whatever the locale says of it."""
    return os.fsencode(argument).decode()


def main():
    import argparse

    parser = argparse.ArgumentParser(description="Ask a Chasqui server on its local socket.")
    parser.add_argument("--socket", default=os.environ.get("CHASQUI_SOCKET", "/run/chasqui.sock"), metavar="PATH")
    parser.add_argument("--command", metavar="NAME", help="health, metrics, props, session.list …")
    parser.add_argument("--max-tokens", type=int, metavar="N")
    parser.add_argument("--temperature", type=float, metavar="T")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("question", nargs="*", help="without one, each line of standard input is a question")
    arguments = parser.parse_args()
    given = {"max_tokens": arguments.max_tokens, "temperature": arguments.temperature, "seed": arguments.seed}
    fields = {name: value for name, value in given.items() if value is not None}
    try:
        with Client(arguments.socket) as client:
            if arguments.command:
                print(json.dumps(client.command(utf8(arguments.command)), indent=2, ensure_ascii=False))
                return 0
            lines = (line.decode() for line in sys.stdin.buffer)
            for question in [utf8(" ".join(arguments.question))] if arguments.question else map(str.strip, lines):
                if question:
                    ask(client, question, fields)
        return 0
    except (OSError, ChasquiError) as error:
        print(f"chasqui.py: {error}", file=sys.stderr)
        return 1
    except UnicodeDecodeError:
        print("chasqui.py: what is asked must be UTF-8", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
