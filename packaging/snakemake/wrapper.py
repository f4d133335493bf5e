"""Snakemake wrapper for resvm: ``params.command`` is train, tune, rank, predict or score.

Inputs without a name are arguments. Inputs and outputs with a name are options: ``positive_ids``
is ``--positive-ids``. The output without a name is the result: a directory of train and tune, or
what the other commands write to stdout.
"""

import shlex

from snakemake.shell import shell

job = snakemake  # noqa: F821 - Snakemake defines it
command = job.params.get("command", "rank")
named_inputs, named_outputs = dict(job.input.items()), dict(job.output.items())
words = [path for path in job.input if path not in named_inputs.values()]
results = [path for path in job.output if path not in named_outputs.values()]
if len(results) != 1:
    raise ValueError(f"resvm {command} has one output without a name, not {len(results)}")
if command == "predict":
    words.insert(0, named_inputs.pop("model"))
for name, path in (named_inputs | named_outputs).items():
    words += [f"--{name.replace('_', '-')}", path]
if command != "score":
    words += ["--jobs", str(job.threads)]
target = f"--output {shlex.quote(results[0])}"
if command not in ("train", "tune"):
    target = f"> {shlex.quote(results[0])}"
extra, log = job.params.get("extra", ""), job.log_fmt_shell(stdout=False, stderr=True)
arguments = shlex.join(words)
shell("resvm {command} {arguments} {extra} {target} {log}")
