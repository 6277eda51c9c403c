#!/usr/bin/env python3
"""What serving a token costs: CPU time of the server's threads for each token that clients receive, with a simulated model,
so that hardly anything but serving is computed. Paced: 20 steps a second, each token is a write of its own; unpaced: as
fast as it goes, and the loop may join what waits. Over TCP, and over a Unix socket, where the kernel does less for each
write. The model's own share (a row of logits for each token, and choosing from it) is in the worker's column.

    bench/serving_cost.py [STREAMS …]          CHASQUI=build/bin/chasqui ROUNDS=3
"""
import os
import statistics
import sys
import tempfile

import paired

STREAMS = [int(word) for word in sys.argv[1:]] or paired.sized([1, 16, 64, 256], [1, 4])
TICK = 1e6 / os.sysconf("SC_CLK_TCK")
KINDS = {"worker": "worker", "offload": "pool", "dispatcher": "pool", "embed": "pool"}


def times(pid):
    """µs of CPU time by kind of thread: (user, system)."""
    spent = {"loop": [0, 0], "worker": [0, 0], "pool": [0, 0]}
    for thread in os.listdir(f"/proc/{pid}/task"):
        name, fields = open(f"/proc/{pid}/task/{thread}/stat").read().split("(", 1)[1].rsplit(") ", 1)
        kind = "loop" if int(thread) == pid else KINDS.get(name.split("-")[0], "pool")
        for i in 0, 1:
            spent[kind][i] += int(fields.split()[11 + i]) * TICK
    return spent


def measure(streams, paced, unix):
    step = "50" if paced else "0"
    tokens = paired.sized(200, 20) if paced else max(400, paired.sized(100_000, 400) // streams)
    flags = ["--engine", "sim", "--sim-step", step]
    with tempfile.TemporaryDirectory() as folder, \
            paired.Server("chasqui", None, streams, streams * (tokens + 200), *flags,
                          "--unix-socket", f"{folder}/socket") as server:
        pid = server.process.pid
        if unix:
            server.url = f"unix:{folder}/socket"
        server.bench(["--load", f"clients={streams},requests={streams},prompt-words=8,max-tokens=8"])
        before = times(pid)
        report = server.bench(["--load", f"clients={streams},requests={streams},prompt-words=8,max-tokens={tokens}"])
        after = times(pid)
    received = report["total"]["streamed_tokens"]
    cost = {kind: [(after[kind][i] - before[kind][i]) / received for i in (0, 1)] for kind in after}
    return {"loop, user": cost["loop"][0], "loop, system": cost["loop"][1], "worker": sum(cost["worker"]),
            "pool": sum(cost["pool"]), "together": sum(sum(each) for each in cost.values()),
            "tokens/s": report["total"]["tokens_per_s"]}


def main():
    columns = ["loop, user", "loop, system", "worker", "pool", "together", "tokens/s"]
    print(f"µs of CPU time for a token, medians of {paired.ROUNDS} rounds, load average {os.getloadavg()[0]:.2f}")
    print(f"{'':<28}" + "".join(f"{column:>14}" for column in columns))
    for unix, paced in (False, True), (False, False), (True, True), (True, False):
        for streams in STREAMS:
            rounds = [measure(streams, paced, unix) for _ in range(paired.ROUNDS)]
            middle = {column: statistics.median(each[column] for each in rounds) for column in columns}
            name = f"{'Unix, ' if unix else ''}{'paced' if paced else 'unpaced'}, {streams} streams"
            paired.record("What serving a token costs", {
                f"{name}: {column if column == 'tokens/s' else column + ', µs a token'}": {"chasqui": middle[column]}
                for column in columns})
            print(name.ljust(28) +
                  "".join(f"{middle[column]:>14.2f}" if column != "tokens/s" else f"{middle[column]:>14.0f}" for column in columns),
                  flush=True)


if __name__ == "__main__":
    main()
