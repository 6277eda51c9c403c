"""What the comparisons share: servers on free ports, one at a time, in rounds that alternate, and a table of medians.

Settings come from the environment: CHASQUI and RAW_DECODE (default: build/bin), LLAMA_SERVER (without it only Chasqui
runs), MODEL, ROUNDS (default 3), THREADS (for every side; default: each one's own), OUR_ARGS, PEER_ARGS (more flags),
NEIGHBOUR (a core that another process keeps busy meanwhile), SIZE=tiny (as little as shows that a script works),
BENCH_RECORD (a file to which figures are appended, for bench/suite.py).
"""
import json
import os
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
START_LIMIT_S = 300
RUN_LIMIT_S = 1800


def from_environment(name, default):
    return os.environ.get(name) or default


CHASQUI = from_environment("CHASQUI", os.path.join(ROOT, "build/bin/chasqui"))
RAW_DECODE = from_environment("RAW_DECODE", os.path.join(ROOT, "build/bin/raw_decode"))
LLAMA_SERVER = from_environment("LLAMA_SERVER", "")
ROUNDS = int(from_environment("ROUNDS", "3"))
THREADS = from_environment("THREADS", "")
TINY = os.environ.get("SIZE") == "tiny"
RECORD = from_environment("BENCH_RECORD", "")
NEIGHBOUR = from_environment("NEIGHBOUR", "")


def sized(usual, tiny):
    return tiny if TINY else usual


def record(title, figures):
    """For bench/suite.py. `figures`: {what: {side: a number}}; sides are chasqui, llama-server and raw_decode."""
    if not RECORD:
        return
    with open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps({"title": title, "figures": figures}, ensure_ascii=False) + "\n")


def model(default):
    """The file to serve: MODEL, else one of those that `make models` makes."""
    path = from_environment("MODEL", os.path.join(ROOT, "build/models", default))
    if not os.path.exists(path):
        sys.exit(f"{path} is missing: run `make models`, or set MODEL")
    return path


def thread_flags():
    return ["-t", THREADS] if THREADS else []


def keep_a_core_busy():
    """Until this process ends, however it does."""
    here = f"while [ -d /proc/{os.getpid()} ]; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done"
    subprocess.Popen(["taskset", "-c", NEIGHBOUR, "sh", "-c", here])


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def end_process(process):
    """In 20 seconds at most."""
    process.send_signal(signal.SIGTERM)  # nothing where it has ended
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Server:
    """A server while a `with` block runs; killed at its end, whatever happened. `slots` None: no flag says how many, nor
    how many cells."""

    def __init__(self, side, model_path, slots=None, cells=None, *more):
        self.port = free_port()
        flags = ["-m", model_path] if model_path else []
        flags += ["--host", "127.0.0.1", "--port", str(self.port)]
        flags += [] if slots is None else ["-np", str(slots)]
        flags += [] if cells is None else ["-c", str(cells)]
        flags += thread_flags() + list(more)
        if side == "chasqui":
            command = [CHASQUI, "serve", "--log-format", "text"] + flags + shlex.split(os.environ.get("OUR_ARGS", ""))
        else:
            command = [LLAMA_SERVER] + flags + shlex.split(os.environ.get("PEER_ARGS", ""))
        self.log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        end = time.monotonic() + START_LIMIT_S
        while not self.is_well():
            if self.process.poll() is not None or time.monotonic() > end:
                text = self.last_lines()
                self.stop()
                sys.exit(f"a server did not start: {shlex.join(self.process.args)}\n{text}")
            time.sleep(0.1)
        return self

    def is_well(self):
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def last_lines(self):
        self.log.seek(0)
        return "".join(self.log.readlines()[-20:])

    def metric(self, name):
        """The sum of a metric of ours over its labels, or over those in `name`."""
        with urllib.request.urlopen(self.url + "/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((name + " ", name + "{", name + ",")))

    def stop(self):
        end_process(self.process)
        self.log.close()

    def __exit__(self, *unused):
        self.stop()

    def bench(self, flags):
        """One run of `chasqui bench`; its report."""
        command = [CHASQUI, "bench", "--url", self.url, "--pid", str(self.process.pid), "--json", "-", "--no-progress",
                   "--ignore-eos", "--warmup", "2"] + flags
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=RUN_LIMIT_S, check=False)
        if done.returncode != 0:
            sys.exit(f"exit status {done.returncode}: {shlex.join(command)}\n{self.last_lines()}")
        return json.loads(done.stdout)


def end_by_signal(*unused):
    sys.exit("ended")  # by way of Server.__exit__


signal.signal(signal.SIGTERM, end_by_signal)
if NEIGHBOUR:
    keep_a_core_busy()


def measure(side, server_shape, flags):
    with Server(side, *server_shape) as server:
        return server.bench(flags)


def raw_decode(model_path, sequences, prompt, tokens):
    """Figures of libllama alone, by name."""
    command = [RAW_DECODE, "-m", model_path, "--sequences", str(sequences), "--prompt", str(prompt), "--tokens", str(tokens)]
    done = subprocess.run(command + thread_flags(), stdout=subprocess.PIPE, text=True, timeout=RUN_LIMIT_S, check=True)
    pairs = (line.split() for line in done.stdout.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2}


def sides():
    return ["chasqui", "llama-server"] if LLAMA_SERVER else ["chasqui"]


def rounds():
    """The sides of each round; the first is last in the next."""
    for number in range(ROUNDS):
        order = sides() if number % 2 == 0 else sides()[::-1]
        load = os.getloadavg()[0]
        print(f"round {number + 1} of {ROUNDS}, {os.cpu_count()} cores, load average {load:.2f}", file=sys.stderr)
        yield order


def at(report, path):
    """A figure of a report: ("total", "itl_ms", "p99"), or a group by its name."""
    value = report
    for key in path:
        if isinstance(value, dict) and value.get("count") == 0:
            return None  # no samples, no figure
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, dict) and "groups" in value:
            value = next(group for group in value["groups"] if group["name"] == key)
        else:
            return None
    return value


def shown(value):
    return "-" if value is None else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def print_table(title, columns, rows):
    """`columns`: {name: [a dict of figures for each round]}; `rows`: the names of figures."""
    print(f"\n{title}: medians of {ROUNDS} rounds, in brackets each round")
    width = max(len(row) for row in rows) + 2
    print(" " * width + "".join(f"{name:>34}" for name in columns))
    medians = {}
    for row in rows:
        line = f"{row:<{width}}"
        for side, figures in columns.items():
            values = [figure[row] for figure in figures if figure.get(row) is not None]
            middle = statistics.median(values) if values else None
            medians.setdefault(row, {})[side] = middle
            line += f"{shown(middle) + '  (' + ' '.join(map(shown, values)) + ')':>34}"
        print(line)
    record(title, medians)


def compare(title, server_shape, flags, figures):
    """Rounds of one load on each side. `figures`: {row: path in the report}."""
    columns = {side: [] for side in sides()}
    for order in rounds():
        for side in order:
            report = measure(side, server_shape, flags)
            columns[side].append({row: at(report, path) for row, path in figures.items()})
    print_table(title, columns, list(figures))
