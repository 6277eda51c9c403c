#!/usr/bin/env python3
"""Three simulated nodes behind HAProxy, with deploy/haproxy/haproxy.cfg as it is: each node has a network of its own, and
they meet at a switch.

    bench/fleet.py [partition|throughput|gauges] …     all by default; Chasqui alone

partition   the cable of a node is cut: how long HAProxy takes to see it, a request meanwhile, and a stream to end
throughput  tokens a second through HAProxy over those of a node that is asked directly; of three nodes over one
gauges      a client that starts and leaves streams: how long /metrics takes to say how many run and wait

The networks are namespaces that only this process sees (unshare, ip): no rights and nothing of the machine is changed.
Settings: CHASQUI, ROUNDS and SIZE, as in bench/paired.py.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import paired

PARTS = sys.argv[1:] or ["partition", "throughput", "gauges"]
NAMES = ["a", "b", "c"]  # of the nodes in haproxy.cfg, at 10.0.0.1, .2 and .3
FRONT = "10.0.0.254"
STEP_MS = 10
SLOTS = 8
ENTERED = "CHASQUI_BENCH_NETWORK"


def enter_network():
    """Runs this script again where it may make networks and none is there, and where all that it starts ends with it."""
    if os.environ.get(ENTERED):
        return
    enter = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvpe("unshare", [*enter, sys.executable, *sys.argv], {**os.environ, ENTERED: "1"})


def ip(*words, inside=None):
    enter = ["nsenter", "--net", "--target", str(inside)] if inside else []
    subprocess.run([*enter, "ip", *words], check=True)


def make_switch():
    ip("link", "set", "lo", "up")
    ip("link", "add", "switch", "type", "bridge")
    ip("addr", "add", f"{FRONT}/24", "dev", "switch")
    ip("link", "set", "switch", "up")


class Machine:
    """A node at an address of its own; its cable can be cut."""

    def __init__(self, number, *flags):
        self.address = f"10.0.0.{number}"
        self.cable = f"node{number}"
        self.net = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        while os.readlink(f"/proc/{self.net.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)  # until unshare has done its work
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", str(self.net.pid))
        ip("link", "set", self.cable, "master", "switch", "up")
        for words in (["link", "set", "lo", "up"], ["addr", "add", f"{self.address}/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            ip(*words, inside=self.net.pid)
        self.log = tempfile.TemporaryFile(mode="w+")
        command = [paired.CHASQUI, "serve", "--engine", "sim", "--sim-step", str(STEP_MS), "-np", str(SLOTS), "-c", "65536",
                   "--host", self.address, "--port", "8080", "--agent-check", f"{self.address}:9091", "--alias",
                   NAMES[number - 1], "--no-auth", "--no-tuning-cache", *flags]
        self.process = subprocess.Popen(["nsenter", "--net", "--target", str(self.net.pid), *command], stdout=self.log,
                                        stderr=self.log)

    def cut(self):
        ip("link", "set", self.cable, "nomaster")

    def mend(self):
        ip("link", "set", self.cable, "master", "switch")

    def last_lines(self):
        self.log.seek(0)
        return "".join(self.log.readlines()[-20:])

    def stop(self):
        """The node; the network stays."""
        paired.end_process(self.process)

    def end(self):
        self.stop()
        ip("link", "delete", self.cable)
        paired.end_process(self.net)


class Proxy:
    """HAProxy, with nothing changed but where its socket is."""

    def __init__(self, folder):
        with open(os.path.join(paired.ROOT, "deploy/haproxy/haproxy.cfg"), encoding="utf-8") as file:
            text = file.read()
        self.socket = os.path.join(folder, "admin.sock")
        path = os.path.join(folder, "haproxy.cfg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("/run/haproxy/admin.sock", self.socket))
        self.process = subprocess.Popen(["haproxy", "-db", "-q", "-f", path], stderr=subprocess.DEVNULL)

    def states(self):
        """UP, DOWN or MAINT of each node."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(b"show stat\n")
            text = b""
            while part := connection.recv(65536):
                text += part
        rows = [line.split(",") for line in text.decode().splitlines()]
        return {row[1]: row[17].split()[0] for row in rows if row[0] == "nodes" and row[1] in NAMES}

    def wait_for(self, name, state, machine=None):
        """`machine`: one that has to live until then."""
        end = time.monotonic() + paired.START_LIMIT_S
        while True:
            with contextlib.suppress(OSError):
                if self.states().get(name) == state:
                    return
            if machine and machine.process.poll() is not None:
                sys.exit(f"node {name} did not start:\n{machine.last_lines()}")
            if time.monotonic() > end:
                sys.exit(f"node {name} does not become {state}: {self.states()}")
            time.sleep(0.005)

    def end(self):
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def fleet(*flags):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        machines = []
        for number in range(1, len(NAMES) + 1):
            machines.append(Machine(number, *flags))
            stack.callback(machines[-1].end)
        proxy = Proxy(folder)
        stack.callback(proxy.end)
        for machine, name in zip(machines, NAMES):
            proxy.wait_for(name, "UP", machine)
        yield machines, proxy


def post(address, body, headers=(), timeout=60):
    connection = http.client.HTTPConnection(address, 8080, timeout=timeout)
    connection.request("POST", "/v1/chat/completions", json.dumps(body),
                       {"Content-Type": "application/json", **dict(headers)})
    return connection, connection.getresponse()


def stream(address, text, headers=()):
    return post(address, {"messages": [{"role": "user", "content": text}], "stream": True, "max_tokens": 60000,
                          "ignore_eos": True}, headers)


def node_of(session):
    """Which node answers, and after how many seconds."""
    begun = time.monotonic()
    body = {"messages": [{"role": "user", "content": "say: x"}], "max_tokens": 1}
    connection, answer = post(FRONT, body, {"x-session-id": session})
    with contextlib.closing(connection):
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{answer.status}: {text.decode()}")
        return json.loads(text)["model"], time.monotonic() - begun


def told(what, value, promise):
    paired.record("Three nodes behind HAProxy", {what: {"chasqui": value}})
    print(f"  {what:<62}{paired.shown(value):>10}   {promise}", flush=True)


def end_of(answer):
    """When the client of a stream sees that it has ended."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        while answer.read1():
            pass
    return time.monotonic()


def partition():
    noticed, longest, ended = [], 0, 0
    with fleet() as (machines, proxy), concurrent.futures.ThreadPoolExecutor(2) as client:
        for turn in range(paired.sized(10, 2)):
            home, _ = node_of(f"session-{turn}")
            machine = machines[NAMES.index(home)]
            if turn == 0:
                connection, answer = stream(FRONT, "go on", {"x-session-id": f"session-{turn}"})
                answer.read1()
                end = client.submit(end_of, answer)
            time.sleep(random.random())  # checks come at any time of their interval
            cut = time.monotonic()
            machine.cut()
            meanwhile = client.submit(node_of, f"session-{turn}")
            proxy.wait_for(home, "DOWN")
            noticed.append(time.monotonic() - cut)
            longest = max(longest, meanwhile.result()[1])
            if node_of(f"session-{turn}")[0] == home:
                sys.exit(f"{home} has answered through a cable that is cut")
            if turn == 0:
                ended = end.result() - cut
                connection.close()
            machine.mend()
            proxy.wait_for(home, "UP")
    print(f"\na cable is cut, {len(noticed)} times: seconds")
    told("until HAProxy sees it, median", statistics.median(noticed), "")
    told("… at most", max(noticed), "≤ 2")
    told("of the first request that was sent there, at most", longest, "")
    told("until the client of a stream sees that it has ended", ended, "")


def tokens_per_second(address, clients):
    """Of so many clients, each with a session of its own, once all of them are under way."""
    begun = time.monotonic()
    first, last = begun + paired.sized(2, 0.5), begun + paired.sized(14, 2)
    tokens = [0] * clients

    def work(number):
        dice = random.Random(number)
        while time.monotonic() < last:
            body = {"messages": [{"role": "user", "content": f"go on {dice.random()}"}], "ignore_eos": True,
                    "max_tokens": dice.randrange(60, 141)}
            connection, answer = post(address, body, {"x-session-id": f"session-{number}"})
            with contextlib.closing(connection):
                usage = json.loads(answer.read())["usage"]
            if first <= time.monotonic() < last:
                tokens[number] += usage["completion_tokens"]

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(clients)))
    return sum(tokens) / (last - first)


def throughput():
    shares, sums = [], []
    for _ in range(paired.ROUNDS):
        with fleet() as (machines, proxy):
            # More clients than slots, so that no node waits for one.
            three = tokens_per_second(FRONT, 9 * SLOTS)
            for machine, name in zip(machines[1:], NAMES[1:]):
                machine.stop()
                proxy.wait_for(name, "DOWN")
            direct = tokens_per_second(machines[0].address, 3 * SLOTS)
            behind = tokens_per_second(FRONT, 3 * SLOTS)
            shares.append(behind / direct)
            sums.append(three / behind)
    print(f"\ntokens a second, {SLOTS} slots and {3 * SLOTS} clients for each node, steps of {STEP_MS} ms; medians of {paired.ROUNDS}")
    told("one node behind HAProxy over the node asked directly", statistics.median(shares), "≥ 0.97")
    told("three nodes over one, both behind HAProxy", statistics.median(sums), "≥ 2.8")


def gauges():
    """What an endpoint picker reads, beside what a client knows: it has the first piece of so many streams."""
    late = []
    with fleet("--queue-requests", "64") as (machines, _):
        machine = machines[0]
        dice = random.Random(1)
        scrape = http.client.HTTPConnection(machine.address, 8080, timeout=60)

        def read():
            scrape.request("GET", "/metrics")
            text = scrape.getresponse().read().decode()
            return tuple(int(sum(float(value) for value in re.findall(rf"^vllm:num_requests_{state}{{.*}} (\S+)$", text, re.M)))
                         for state in ("running", "waiting"))

        streams = []
        for _ in range(paired.sized(300, 20)):
            if len(streams) < 2 or (len(streams) < 3 * SLOTS and dice.random() < 0.5):
                streams.append(stream(machine.address, f"go on {dice.random()}"))
            else:
                connection, answer = streams.pop(dice.randrange(len(streams)))
                answer.close()
                connection.close()
            changed = time.monotonic()
            truth = (min(len(streams), SLOTS), max(0, len(streams) - SLOTS))
            while (now := read()) != truth:
                if time.monotonic() - changed > 10:
                    sys.exit(f"/metrics says {now}, {truth} run and wait")
            late.append(1000 * (time.monotonic() - changed))
        for connection, answer in streams:
            answer.close()
            connection.close()
    print(f"\n{len(late)} streams that begin or end, up to {3 * SLOTS} at once: ms until /metrics says how many run and wait")
    told("median", statistics.median(late), "")
    told("at most", max(late), "≤ 200")


enter_network()
make_switch()
for part in PARTS:
    if part not in ("partition", "throughput", "gauges"):
        sys.exit(f"no such part: {part}")
    {"partition": partition, "throughput": throughput, "gauges": gauges}[part]()
