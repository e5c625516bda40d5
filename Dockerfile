# The server in a container: API, web app, background work. compose.yaml runs it beside PostgreSQL.
#
# wheels/ in the build context, if there, is looked into before anything is downloaded. Behind a proxy with certificates of its own,
# BASE is an image that trusts them, and NODE_EXTRA_CA_CERTS names their file in it.
ARG BASE=python:3.11-slim

FROM ${BASE} AS made
RUN apt-get update && apt-get install --yes --no-install-recommends make
WORKDIR /gridx
COPY . .
ARG NODE_EXTRA_CA_CERTS
# The Makefile knows how; the tools for tests stay out.
RUN PIP_NO_CACHE_DIR=1 PIP_FIND_LINKS=/gridx/wheels make setup TOOLS= && rm -rf wheels frontend/node_modules

FROM ${BASE}
COPY --from=made /gridx /gridx
RUN groupadd --gid 1000 gridx && useradd --uid 1000 --gid 1000 --no-create-home --home-dir /data gridx && install -d -o 1000 -g 1000 /data
ENV PATH=/gridx/.venv/bin:$PATH GRIDX_HOME=/data PYTHONUNBUFFERED=1
WORKDIR /data
VOLUME /data
USER 1000:1000
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=3)"]
CMD ["gridx", "serve", "--host", "0.0.0.0", "--port", "8000"]
