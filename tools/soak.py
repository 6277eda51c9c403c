#!/usr/bin/env python3
"""Mixed load with faults for as long as is said, and what is left of it: tools/soak.py [--minutes 60] [--warm-up 4] [--seed 1].

Clients of all kinds (streams, whole answers, sessions, embeddings, streams that are resumed, clients that leave, reset,
never read, or send rubbish) against one server with the built-in model, a small cache, and both folders. Meanwhile the
process is stopped and continued, runs out of descriptors, has its cache files deleted and cut, and is told to read its
keys again. Every ten seconds its memory, descriptors and threads are noted. In the end: resident memory by quarters, the
last within 2 % of the second; descriptors likewise, and as before; threads as before; nothing left of any request; a
canary that says what it said before; no answer with 5xx but 503; a recording whose replay makes the same plans, all of
them. Exit status 1 when one of these does not hold.

The warm-up comes first and is not counted: the caches fill up in the first minute, and what is allocated stays the same
from then on, but malloc takes until the third to have seen its pieces in every order (what it holds is a quarter more).
"""
import argparse
import glob
import http.client
import json
import os
import random
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHASQUI = os.environ.get("CHASQUI", os.path.join(ROOT, "build/bin/chasqui"))
CLIENTS = 10
NOTE_EVERY_S = 10
SAY_EVERY = 6  # notes
FAULT_EVERY_S = 7
RECORD_MAX = 2 << 30  # bytes, where a recording ends by itself
KEPT = ("snapshots", "snapshot_bytes", "prefix_index_bytes", "sessions", "kept_streams")
GAUGES = ("requests_running", "requests_waiting", "kv_slots_used", "kv_cells_used", "http_body_bytes", "kept_streams")
WORDS = "river stone light under seven quiet doors of the old house where none had asked for bread since spring".split()


class Soak:
    def __init__(self, folder, seed):
        self.folder, self.seed = folder, seed
        self.keys = os.path.join(folder, "keys")
        with open(self.keys, "w", encoding="ascii") as file:
            file.write("soak-key\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.record = os.path.join(folder, "record")
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        command = [CHASQUI, "serve", "--port", str(self.port), "-np", "6", "-c", str(6 * 1024), "--cache-ram", "48",
                   "--cache-disk", os.path.join(folder, "cache"), "--cache-disk-mib", "64", "--session-dir",
                   os.path.join(folder, "sessions"), "--session-ttl", "20", "--api-key-file", self.keys, "--resume-ttl", "5",
                   "--log-level", "warning", "--log-format", "text", "--request-timeout", "60", "--record", self.record]
        for name in ("cache", "sessions"):
            os.makedirs(os.path.join(folder, name))
        self.server = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.statuses, self.wrong, self.broken_off, self.faults = {}, [], 0, {}

    # --- talking to it

    def call(self, method, path, body=None, headers=(), read=True):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Authorization": "Bearer soak-key", **dict(headers)})
            answer = connection.getresponse()
            return answer.status, answer.read() if read else b""
        finally:
            connection.close()

    def ask(self, path, body, headers=()):
        """A request whose status is counted; the answer of one that succeeded."""
        status, text = self.call("POST", path, body, headers)
        with self.lock:
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status >= 500 and status != 503:
                self.wrong.append((path, status, text[:300]))
        return text if status == 200 else None

    def metric(self, name):
        lines = self.call("GET", "/metrics")[1].decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"chasqui_{name} ", f"chasqui_{name}{{")))

    def canary(self):
        body = {"messages": [{"role": "user", "content": "Tell me a story"}], "temperature": 0, "max_tokens": 24}
        text = json.loads(self.call("POST", "/v1/chat/completions", body)[1])
        return text["choices"][0]["message"]["content"]

    # --- the clients

    def words(self, dice, most):
        return " ".join(dice.choices(WORDS, k=dice.randrange(1, most)))

    def chat(self, dice, **fields):
        messages = [{"role": "user", "content": self.words(dice, 200)}]
        return {"messages": messages, "max_tokens": dice.randrange(1, 48), "seed": dice.randrange(99), **fields}

    def whole(self, dice):
        self.ask("/v1/chat/completions", self.chat(dice))

    def stream(self, dice):
        self.ask("/v1/chat/completions", self.chat(dice, stream=True))

    def constrained(self, dice):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}}, "required": ["a"]}
        self.ask("/v1/chat/completions", self.chat(dice, response_format={"type": "json_schema", "json_schema": {"schema": schema}}))

    def vectors(self, dice):
        self.ask("/v1/embeddings", {"input": [self.words(dice, 20), self.words(dice, 20)]})

    def tokens(self, dice):
        self.ask("/tokenize", {"content": self.words(dice, 2000)})

    def session(self, dice):
        made = self.ask("/v1/sessions", {"messages": [{"role": "user", "content": self.words(dice, 60)}]})
        if made is None:
            return
        path = f"/v1/sessions/{json.loads(made)['id']}"
        for _ in range(dice.randrange(1, 4)):
            self.ask(f"{path}/generate", {"max_tokens": 8})
            self.ask(f"{path}/append", {"messages": [{"role": "user", "content": self.words(dice, 30)}]})
        if dice.random() < 0.7:
            self.call("DELETE", path)

    def resumed(self, dice):
        name = f"s{dice.randrange(1 << 40)}"
        with self.sent(self.chat(dice, stream=True, max_tokens=40), f"X-Conversation-Id: {name}\r\n") as client:
            client.recv(dice.randrange(1, 4000))
        self.call("GET", f"/v1/stream?conv_id={name}&from=0")

    def sent(self, body, headers=""):
        text = json.dumps(body)
        client = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer soak-key\r\n{headers}"
                       f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        return client

    def leaving(self, dice):
        with self.sent(self.chat(dice, stream=True, max_tokens=400, ignore_eos=True)) as client:
            time.sleep(dice.random() / 5)
            if dice.random() < 0.5:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def deaf(self, dice):
        with self.sent(self.chat(dice, stream=True, max_tokens=400)):
            time.sleep(dice.random() * 2)

    def rubbish(self, dice):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as client:
            client.sendall(dice.randbytes(dice.randrange(1, 3000)))
            client.settimeout(1)
            try:
                while client.recv(4096):
                    pass
            except OSError:
                pass

    def client(self, number):
        dice = random.Random(self.seed * 1000 + number)
        kinds = [self.whole, self.whole, self.stream, self.stream, self.constrained, self.vectors, self.tokens, self.session,
                 self.resumed, self.leaving, self.deaf, self.rubbish]
        while not self.over.is_set():
            try:
                dice.choice(kinds)(dice)
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.broken_off += 1  # while it was out of descriptors: its connection waited and was given up
                time.sleep(0.05)

    # --- what is done to it

    def stopped(self, dice):
        self.server.send_signal(signal.SIGSTOP)
        time.sleep(0.2 + dice.random())
        self.server.send_signal(signal.SIGCONT)

    def no_descriptors(self, _):
        now = len(os.listdir(f"/proc/{self.server.pid}/fd"))
        soft, hard = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (now, hard))
        time.sleep(1)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (soft, hard))

    def files(self, dice):
        return [name for name in glob.glob(f"{self.folder}/cache/**/*", recursive=True) if os.path.isfile(name)] or [None]

    def file_deleted(self, dice):
        if name := dice.choice(self.files(dice)):
            os.unlink(name)

    def file_cut(self, dice):
        if name := dice.choice(self.files(dice)):
            os.truncate(name, os.path.getsize(name) // 2)

    def keys_again(self, _):
        self.server.send_signal(signal.SIGHUP)

    def do_harm(self):
        dice = random.Random(self.seed)
        kinds = [self.stopped, self.no_descriptors, self.file_deleted, self.file_cut, self.keys_again]
        while not self.over.wait(FAULT_EVERY_S):
            kind = dice.choice(kinds)
            try:
                kind(dice)
                self.faults[kind.__name__] = self.faults.get(kind.__name__, 0) + 1
            except FileNotFoundError:
                pass  # the server has deleted it meanwhile

    # --- what is seen of it

    def used(self):
        with open(f"/proc/{self.server.pid}/status", encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        return {"resident_mib": int(status["VmRSS"].split()[0]) / 1024, "threads": int(status["Threads"]),
                "descriptors": len(os.listdir(f"/proc/{self.server.pid}/fd"))}

    def say(self, note, begun):
        """A line of how it is now, with what the server says it keeps."""
        try:
            kept = ", ".join(f"{name} {self.metric(name):.0f}" for name in KEPT)
        except (OSError, http.client.HTTPException):
            kept = "it cannot be asked now"
        print(f"  {(time.monotonic() - begun) / 60:5.1f} min  {note['resident_mib']:7.1f} MiB, {note['descriptors']} descriptors, "
              f"{note['threads']} threads, {sum(self.statuses.values())} answers; {kept}", flush=True)

    def wait_until(self, wish, limit_s):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if self.server.poll() is not None:
                return False
            try:
                if wish():
                    return True
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        return False

    def is_idle(self):
        return all(self.metric(name) == 0 for name in GAUGES)

    def run(self, warm_up, minutes):
        if not self.wait_until(lambda: self.call("GET", "/health")[0] == 200, 60):
            sys.exit("the server did not start")
        self.call("POST", "/v1/embeddings", {"input": "x"})  # its thread begins with the first
        song, before = self.canary(), self.used()
        threads = [threading.Thread(target=self.client, args=(i,), daemon=True) for i in range(CLIENTS)]
        threads.append(threading.Thread(target=self.do_harm, daemon=True))
        for thread in threads:
            thread.start()
        notes = []
        begun = time.monotonic()
        end = begun + 60 * (warm_up + minutes)
        while time.monotonic() < end and self.server.poll() is None:
            time.sleep(min(NOTE_EVERY_S, max(0.1, end - time.monotonic())))
            notes.append(self.used())
            if len(notes) % SAY_EVERY == 0:
                self.say(notes[-1], begun)
        del notes[:min(round(60 * warm_up / NOTE_EVERY_S), len(notes) - 4)]
        self.over.set()
        for thread in threads:
            thread.join(150)
        return self.report(song, before, notes)

    def report(self, song, before, notes):
        held = []

        def hold(what, good):
            held.append(good)
            print(f"  {'holds' if good else 'BROKEN':<7} {what}", flush=True)

        def quarters(what):
            count = max(1, len(notes) // 4)
            return [statistics.median(note[what] for note in notes[i * count:(i + 1) * count]) for i in range(4)]

        parts = quarters("resident_mib")
        print(f"  answers {dict(sorted(self.statuses.items()))}, broken off {self.broken_off}, faults {self.faults}")
        hold(f"resident memory by quarters, MiB: {', '.join(f'{part:.1f}' for part in parts)}", parts[3] <= parts[1] * 1.02)
        opened = quarters("descriptors")
        hold(f"descriptors by quarters: {', '.join(f'{part:.0f}' for part in opened)}, at most "
             f"{max(note['descriptors'] for note in notes)}", opened[3] <= opened[1] + CLIENTS // 2)
        idle = self.wait_until(self.is_idle, 60)
        hold(f"nothing is left of any request {'' if idle else {name: self.metric(name) for name in GAUGES}}", idle)
        # Files of sessions and snapshots are open only while they are written.
        back = self.wait_until(lambda: self.used()["descriptors"] <= before["descriptors"] + 1, 60)
        after = self.used()
        hold(f"descriptors: {before['descriptors']} before, {after['descriptors']} after", back)
        hold(f"threads: {before['threads']} before, {after['threads']} after", after["threads"] <= before["threads"])
        hold("the canary says what it said before", self.canary() == song)
        hold(f"no 5xx but 503 {self.wrong[:3] or ''}", not self.wrong)
        for name in ("loop_lost_exceptions_total", "steps_failed_total"):
            hold(f"{name}: {self.metric(name):.0f}", self.metric(name) == 0)
        self.server.send_signal(signal.SIGTERM)
        code = self.server.wait(timeout=60)
        hold(f"exit code {code}", code == 0)
        replay = subprocess.run([CHASQUI, "replay", self.record], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        whole = os.path.getsize(self.record) < RECORD_MAX
        print("    " + replay.stdout.strip().replace("\n", "\n    "))
        hold(f"its recording of {os.path.getsize(self.record) / 2**20:.0f} MiB has the same plans", whole and replay.returncode == 0)
        return all(held)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=4, metavar="MINUTES")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(folder, arguments.seed)
        try:
            print(f"soak: {arguments.minutes:g} minutes of mixed load with faults, after {arguments.warm_up:g} to warm up, seed "
                  f"{arguments.seed}", flush=True)
            good = soak.run(arguments.warm_up, arguments.minutes)
            if not good:
                soak.log.seek(0)
                print("".join(soak.log.readlines()[-30:]))
        finally:
            soak.over.set()
            if soak.server.poll() is None:
                soak.server.kill()
                soak.server.wait()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
