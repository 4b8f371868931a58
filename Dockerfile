# Weir in a container: docs/run.md. The image holds the program with its adapters inside and no toolchain.
FROM rust:1.95-bookworm AS build
WORKDIR /weir
COPY . .
# `weir --version` says it: --build-arg COMMIT="$(git rev-parse HEAD)"
ARG COMMIT
ENV WEIR_COMMIT=$COMMIT
# As `cargo xtask package` does it; the caches stay with the machine that builds, not in the image.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/cache \
    WEIR_CACHE=/cache cargo xtask package \
    && mkdir /package && tar --extract --gzip --strip-components=1 --directory=/package --file dist/weir-*.tar.gz

FROM debian:bookworm-slim
# Nothing of this stage needs a network. The user is a number too, since Kubernetes checks by the number that it is not root.
RUN groupadd --gid 10001 weir \
    && useradd --system --uid 10001 --gid weir --home-dir /var/lib/weir --shell /usr/sbin/nologin weir \
    && install --directory --owner=weir --group=weir --mode=0700 /var/lib/weir /var/lib/weir/data /var/lib/weir/plugins \
    && install --directory /etc/weir/contracts
# For connections to https services.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /package/weir /usr/local/bin/weir
COPY --from=build /package/weir.toml /etc/weir/weir.toml
COPY --from=build /package/LICENSE /usr/share/doc/weir/LICENSE
USER 10001:10001
WORKDIR /var/lib/weir
ENV WEIR_CONFIG=/etc/weir/weir.toml WEIR_LISTEN=0.0.0.0:8484 WEIR_LOG_FORMAT=json
# State, plugins and data; contracts are mounted at /etc/weir/contracts.
VOLUME /var/lib/weir
EXPOSE 8484
# On SIGTERM accepted calls are answered: give `docker stop` two minutes.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["bash", "-c", \
    "exec 3<>/dev/tcp/127.0.0.1/${WEIR_LISTEN##*:} && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && grep -q ^ok <&3"]
ENTRYPOINT ["weir"]
CMD ["serve"]
