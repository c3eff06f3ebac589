# One image for the operator, the drivers and the executors. Built by docker/build; docker/entrypoint says what it starts.
ARG BASE=debian:bookworm-slim

FROM $BASE AS python
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt
ENV PATH=/opt/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

# What builds, and how pip reaches its index here, stays in stages that are left behind.
FROM python AS tools
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv
ENV PIP_CONFIG_FILE=/run/secrets/pip.conf PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements-build.lock /build/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    python3 -m venv /opt/venv && pip install --require-hashes -r /build/requirements-build.lock

FROM tools AS dependencies
COPY requirements.lock /build/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    pip install -q --no-build-isolation --require-hashes -r /build/requirements.lock

FROM dependencies AS environment
RUN pip uninstall -y setuptools wheel pip

FROM dependencies AS program
COPY pyproject.toml LICENSE /build/
COPY joinlib /build/joinlib
COPY jobs /build/jobs
COPY operator /opt/streamjoin/operator
RUN pip install -q --no-deps --no-build-isolation --no-index --target /opt/streamjoin/lib /build \
 && python -m compileall -q /opt/streamjoin/operator

FROM python AS runtime
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt \
 && ln -s /usr/lib/jvm/java-17-openjdk-* /usr/lib/jvm/java-17 \
 && useradd --uid 185 --create-home streamjoin \
 && install -d -o streamjoin -g streamjoin /opt/streamjoin /var/streamjoin
ENV HOME=/home/streamjoin \
    JAVA_HOME=/usr/lib/jvm/java-17 \
    NUMBA_CACHE_DIR=/tmp/numba \
    PATH=/opt/streamjoin/lib/bin:$PATH \
    PYSPARK_PYTHON=/opt/venv/bin/python \
    PYTHONPATH=/opt/streamjoin/lib:/opt/streamjoin/operator \
    SPARK_HOME=/opt/streamjoin/cache/spark-home \
    XDG_CACHE_HOME=/opt/streamjoin/cache
COPY --from=environment /opt/venv /opt/venv

FROM runtime AS prepared
USER 185
COPY docker/prepare /tmp/
COPY joinlib /opt/streamjoin/lib/joinlib
RUN /tmp/prepare

FROM runtime
COPY docker/decom.sh /opt/
COPY --from=prepared /opt/streamjoin/cache /opt/streamjoin/cache
COPY --from=program /opt/streamjoin/operator /opt/streamjoin/operator
COPY --from=program /opt/streamjoin/lib /opt/streamjoin/lib
COPY docker/entrypoint docker/sbom /opt/streamjoin/
RUN python /opt/streamjoin/sbom "$SPARK_HOME/jars" >/opt/streamjoin/sbom.json
USER 185
WORKDIR /home/streamjoin
ENTRYPOINT ["/opt/streamjoin/entrypoint"]
