# docker build -t resvm .
# docker run --rm -v "$PWD:/data" resvm train -P pos.svm -U unl.svm -o model/
FROM python:3.13-slim-bookworm AS build
# LIBSVM and LIBLINEAR come as source; Debian keeps one version of each package
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY pyproject.toml setup.py README.md LICENSE ./
COPY resvm_cli resvm_cli
RUN python -m venv /opt/resvm \
    && /opt/resvm/bin/pip install --no-cache-dir ".[plot,zstd,sklearn]"

FROM python:3.13-slim-bookworm
# LIBSVM is built with OpenMP
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/resvm /opt/resvm
ENV PATH=/opt/resvm/bin:$PATH
WORKDIR /data
ENTRYPOINT ["resvm"]
CMD ["--help"]
