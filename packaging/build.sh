#!/bin/sh
# The sdist, the wheel made from it, both checked, and each tried in an environment of its own.
#
#     sh packaging/build.sh [PYTHON]
#
# leaves dist/*.tar.gz and dist/*.whl; what it needed meanwhile is in .dist/.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
rm -rf dist .dist build

"$python" -m venv .dist/build
.dist/build/bin/python -m pip install --quiet --disable-pip-version-check \
    build twine check-wheel-contents
.dist/build/bin/python -m build  # the wheel comes from the sdist, not from this folder
.dist/build/bin/twine check --strict dist/*
.dist/build/bin/check-wheel-contents dist/*.whl

for package in dist/*.whl dist/*.tar.gz; do
    environment=.dist/try-$(basename "$package")
    "$python" -m venv "$environment"
    "$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
    "$environment/bin/python" -m pip check
    "$environment/bin/python" -I packaging/smoke_test.py sample_data
done
ls -l dist
