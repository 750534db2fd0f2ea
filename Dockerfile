FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked --bin payonce

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates curl \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 payonce
COPY --from=build /src/target/release/payonce /usr/local/bin/payonce
USER payonce
ENV PAYONCE_HOST=0.0.0.0 PAYONCE_PROVIDER_HOST=0.0.0.0 PAYONCE_LOG_FORMAT=json
EXPOSE 8080 8081
# The grace time of the server, then SIGKILL.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=2s --start-period=10s \
  CMD curl -fsS http://127.0.0.1:8080/readyz || exit 1
ENTRYPOINT ["payonce"]
CMD ["serve"]
