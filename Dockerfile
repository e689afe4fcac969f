# The server, as `ekphory serve` runs it; docs/self-hosting.md says how.

FROM python:3.13-slim-trixie AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
# `--build-arg EXTRAS=server,mcp,cluster` for deploy/kuberay.
ARG EXTRAS=server,mcp
RUN python -m venv /opt/ekphory \
    && /opt/ekphory/bin/python -m pip install --no-cache-dir ".[${EXTRAS}]"

FROM python:3.13-slim-trixie
COPY --from=build /opt/ekphory /opt/ekphory
RUN groupadd --gid 10001 ekphory \
    && useradd --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin ekphory \
    && install --directory --owner=10001 --group=10001 --mode=0700 /data
ENV PATH=/opt/ekphory/bin:$PATH \
    EKPHORY_STORE=/data/memories
USER 10001:10001
WORKDIR /data
VOLUME ["/data"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=4)"]
ENTRYPOINT ["ekphory"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
