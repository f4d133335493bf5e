"""Run the steps of one case and report how long they took and how much memory they used.

This is a separate, small process because Linux counts the memory of the parent toward the peak of a
new program (exec keeps the old peak). A benchmark process full of arrays would therefore report its
own size for every program. The launcher reads one JSON object from stdin and writes one to stdout.
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
    """Start one program of a pipeline, with these file descriptors as its standard streams."""
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
    """Run one pipeline; return the exit codes, total memory and total CPU time of its programs."""
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
