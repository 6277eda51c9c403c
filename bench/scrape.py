#!/usr/bin/env python3
"""What two scrapers of /metrics at 20 Hz cost: CPU time of the whole server, as a share of one core, in windows with
scrapers and without that alternate; and how long a scrape takes at its client. The server is idle otherwise: what streams
cost varies by more than scrapers do, and a scrape costs the same beside them.

    bench/scrape.py [ROUNDS] [SECONDS]          CHASQUI=build/bin/chasqui, OUR_ARGS: more flags of serve
"""
import http.client
import os
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time

CHASQUI = os.environ.get("CHASQUI", "build/bin/chasqui")
SCRAPERS, RATE = 2, 20


def cpu_seconds(pid):
    """Of all threads, to the nanosecond."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def scrape(port, until, took, size):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    due = time.monotonic()
    while due < until:
        time.sleep(max(0.0, due - time.monotonic()))
        begin = time.perf_counter()
        connection.request("GET", "/metrics")
        size.append(len(connection.getresponse().read()))
        took.append(time.perf_counter() - begin)
        due += 1 / RATE
    connection.close()


def window(port, pid, seconds, scrapers):
    """The share of a core that the server takes, and times and sizes of scrapes."""
    took, size = [], []
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=scrape, args=(port, until, took, size)) for _ in range(scrapers)]
    begin, before = time.monotonic(), cpu_seconds(pid)
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, until - time.monotonic()))
    for thread in threads:
        thread.join()
    share = (cpu_seconds(pid) - before) / (time.monotonic() - begin)
    return share, took, size


def measure(port, pid, rounds, seconds):
    costs, all_took, sizes = [], [], []
    for turn in range(rounds):
        order = [0, SCRAPERS] if turn % 2 == 0 else [SCRAPERS, 0]
        shares = {}
        for scrapers in order:
            shares[scrapers], took, size = window(port, pid, seconds, scrapers)
            all_took += took
            sizes += size
        costs.append(shares[SCRAPERS] - shares[0])
    return costs, all_took, max(sizes)


def row(what, costs, took, size):
    each = "  ".join(f"{cost * 100:.2f}" for cost in costs)
    print(f"| {what} | {statistics.median(costs) * 100:.2f} ({each}) | {statistics.median(took) * 1e6:.0f} "
          f"| {sorted(took)[int(len(took) * 0.99)] * 1e6:.0f} | {size} |")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5
    server = subprocess.Popen(
        [CHASQUI, "serve", "--engine", "sim", "-np", "8", "--port", "0", "--log-level", "error"] + shlex.split(os.environ.get("OUR_ARGS", "")), stdout=subprocess.PIPE, text=True)
    try:
        port = None
        for line in server.stdout:
            port = port or re.search(r"http://127.0.0.1:(\d+)", line)
            if line.startswith("serving "):
                break
        port = int(port[1])
        print(f"load average {os.getloadavg()[0]:.1f}; {SCRAPERS} scrapers at {RATE} Hz, {rounds} rounds of "
              f"{seconds:.0f} s", file=sys.stderr)
        print("| | % of a core | scrape, p50 µs | p99 µs | bytes |\n|---|---:|---:|---:|---:|")
        row("two scrapers", *measure(port, server.pid, rounds, seconds))
    finally:
        server.terminate()
        server.wait()


main()
