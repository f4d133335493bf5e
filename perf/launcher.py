"""Run the steps of one case and say how long they took and what memory they held.

A process of its own, and a small one: Linux counts the memory of whoever starts a program as that
program's until it is loaded (exec keeps the old peak), so a harness full of arrays would show
its own size as everyone's. Reads one JSON object from stdin, writes one to stdout.
"""

import json
import os
import signal
import sys
import time

running = []


def stop(signum, frame):
    del signum, frame
    for pid in running:
        os.kill(pid, signal.SIGKILL)


def start(argv, stdin, stdout, stderr, environment):
    """One program of a pipeline, with these descriptors as its first three."""
    return os.posix_spawnp(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
    )


def run(pipeline, stdout, stderr, environment):
    """Run one pipeline to its end: exit codes, and memory and CPU time of its programs together."""
    source = os.open(os.devnull, os.O_RDONLY)
    for number, argv in enumerate(pipeline):
        last = number == len(pipeline) - 1
        read_end, write_end = (-1, stdout) if last else os.pipe()
        running.append(start(argv, source, write_end, stderr, environment))
        os.close(source)
        if not last:
            os.close(write_end)
        source = read_end
    codes, peak, busy = [], 0, 0.0
    while running:
        _, status, usage = os.wait4(running[0], 0)
        running.pop(0)
        codes.append(os.waitstatus_to_exitcode(status))
        peak += usage.ru_maxrss
        busy += usage.ru_utime + usage.ru_stime
    return codes, peak, busy


def main():
    task = json.load(sys.stdin)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    stdout = os.open(task["stdout"], flags, 0o644)
    stderr = os.open(task["stderr"], flags, 0o644)
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, task["timeout"])
    peak, code, cpu = 0, 0, 0.0
    begin = time.perf_counter()
    for pipeline in task["steps"]:
        codes, held, busy = run(pipeline, stdout, stderr, task["environment"])
        peak = max(peak, held)
        cpu += busy
        code = next(filter(None, codes), 0)
        if code:
            break
    seconds = time.perf_counter() - begin
    result = {"seconds": seconds, "cpu_seconds": cpu, "peak_kb": peak, "code": code}
    json.dump(result, sys.stdout)


main()
