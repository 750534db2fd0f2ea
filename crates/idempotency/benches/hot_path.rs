//! What every request pays before anything is looked up, and every replay after it: reading the key,
//! fingerprinting the request, decoding the stored reply. `cargo bench -p idempotency --features redis`
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on should stop")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use idempotency::canonical::Canonical;
use idempotency::fingerprint::Body;
use idempotency::reply::ReplyHeader;
use idempotency::sealed::Sealer;
use idempotency::{Claim, Fingerprinter, Finished, Identity, Key, Outcome, Parts, Reply, Scope};
use time::{Duration, OffsetDateTime};

const KEY: &[u8] = b"8e03978e-40d5-43dd-bc93-6894a57f9324";
const QUOTED: &[u8] = b"\"8e03978e-40d5-43dd-bc93-6894a57f9324\"";
const ORDER: &[u8] = br#"{"lines":[{"sku":"counter-bell","quantity":1},{"sku":"enamel-mug","quantity":2}],"expected_total":{"amount":6000,"currency":"USD"}}"#;

fn identity() -> Identity {
    Identity { scope: Scope::account([7; 16]), key: Key::from_bare(KEY).unwrap() }
}

fn claim(fingerprinter: &Fingerprinter, document: &Canonical) -> Claim {
    let parts = Parts {
        method: "POST",
        path: "/v1/orders",
        query: "",
        content_type: Some("application/json"),
        body: Body::Json(document),
    };
    fingerprinter.claim(identity(), parts, &["password"])
}

fn finished(claim: &Claim) -> Finished {
    let body = vec![b'x'; 400];
    let path = "/v1/orders/ord_0123456789abcdef0123456789abcdef";
    Finished {
        fingerprint: claim.fingerprint,
        marks: claim.marks.clone(),
        outcome: Outcome::Completed,
        reply: Reply::new(201, "application/json", body).with(ReplyHeader::Location, path),
        expires_at: OffsetDateTime::UNIX_EPOCH + Duration::days(30_000),
        resource: Some(path.to_owned()),
    }
}

fn keys(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("key");
    group.bench_function("bare", |bench| bench.iter(|| Key::parse([black_box(KEY)]).unwrap()));
    group.bench_function("quoted", |bench| bench.iter(|| Key::parse([black_box(QUOTED)]).unwrap()));
    group.finish();
}

fn fingerprints(criterion: &mut Criterion) {
    let fingerprinter = Fingerprinter::new(b"a server secret");
    let document = Canonical::parse(ORDER).unwrap();
    let mut group = criterion.benchmark_group("fingerprint");
    group.bench_function("canonical form of an order", |bench| {
        bench.iter(|| Canonical::parse(black_box(ORDER)).unwrap());
    });
    group.bench_function("claim of an order", |bench| {
        bench.iter(|| claim(&fingerprinter, black_box(&document)));
    });
    group.finish();
}

fn replies(criterion: &mut Criterion) {
    let document = Canonical::parse(ORDER).unwrap();
    let finished = finished(&claim(&Fingerprinter::new(b"a server secret"), &document));
    let (headers, body) = (finished.reply.encode_headers(), finished.reply.body().clone());
    let (sealer, identity) = (Sealer::new(b"a server secret"), identity());
    let sealed = Bytes::from(sealer.seal(&identity, &finished));
    let mut group = criterion.benchmark_group("reply");
    group.bench_function("decoded from a row", |bench| {
        bench.iter(|| Reply::from_stored(201, black_box(&headers), body.clone()).unwrap());
    });
    group.bench_function("opened from the cache", |bench| {
        bench.iter(|| sealer.open(&identity, black_box(sealed.clone())).unwrap());
    });
    group.finish();
}

criterion_group!(benches, keys, fingerprints, replies);
criterion_main!(benches);
