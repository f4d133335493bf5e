#!/bin/sh
# The main job on the sample data; every command is shown before it runs. Called by `make demo`.
set -eu
cd "$(dirname "$0")/.."
out=demo-output
rm -rf "$out"
mkdir "$out"

show() {
    printf '\n$ %s\n' "$1"
    sh -c "$1"
}

show "resvm train -P sample_data/digits/pos.svm -U sample_data/digits/unl.svm -o $out/digits"
show "resvm predict $out/digits sample_data/digits/test.svm --ids --votes --format tsv -o $out/digits.tsv"
show "sort -k3,3gr $out/digits.tsv | head -n 5"
show "resvm inspect $out/digits"
show "resvm rank -P sample_data/digits/pos.svm -U sample_data/digits/unl.svm --model $out/digits --html $out/ranking.html -q | head -n 4"
show "resvm rank -P sample_data/digits/pos.svm -U sample_data/digits/unl.svm --model $out/digits --audit -q | head -n 6"
show "resvm train -P sample_data/synthetic/pos.svm -U sample_data/synthetic/unl.svm -q -o $out/synthetic"
show "cat sample_data/synthetic/test.svm | resvm predict $out/synthetic > $out/synthetic.pred"
show "resvm score $out/synthetic.pred --labels sample_data/synthetic/test.svm --curve $out/synthetic.csv"
printf '\nNext: .venv/bin/resvm train --help, or your own files:\n      .venv/bin/resvm train -P pos.svm -U unl.svm -o model/\n'
