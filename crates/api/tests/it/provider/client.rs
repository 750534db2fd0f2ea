//! What the client concludes from a provider that misbehaves.

use std::time::Duration;

use api::provider::client::{Answer, ProviderClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{charge, free_listener, http, refund_of};

/// A client whose provider answers every request with these bytes and hangs up.
async fn answered(response: impl Into<String>) -> ProviderClient {
    let response = response.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
            socket.write_all(response.as_bytes()).await.unwrap();
        }
    });
    ProviderClient::new(&base_url, http(), Duration::from_secs(5))
}

#[tokio::test]
async fn a_refused_connection_is_definitely_not_sent() {
    let closed = free_listener().local_addr().unwrap();
    let client = ProviderClient::new(&format!("http://{closed}/"), http(), Duration::from_secs(5));
    let answer = client.charge(&charge("k1", 100, "pm_card_ok")).await;
    assert_eq!(answer, Answer::NotSent { reason: "connection refused".to_owned() });
    assert!(client.find_charge("k1").await.is_err());
}

#[tokio::test]
async fn whatever_is_not_understood_leaves_the_outcome_open() {
    for response in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>",
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\ncontent-length: 20\r\n\r\n{\"code\":\"not_found\"}",
        "HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 422 Unprocessable\r\ncontent-length: 21\r\n\r\n{\"code\":\"key_reused\"}",
        "HTTP/1.1 500 Oops\r\ncontent-length: 19\r\n\r\n{\"code\":\"internal\"}",
        "HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy",
        "HTTP/1.1 502 Bad\r\ncontent-length: 22\r\n\r\n{\"code\":\"unavailable\"}",
        "not http at all\r\n\r\n",
    ] {
        let client = answered(response).await;
        let answer = client.charge(&charge("k1", 100, "pm_card_ok")).await;
        assert!(matches!(answer, Answer::Lost { .. }), "{response:?} {answer:?}");
        assert!(client.find_charge("k1").await.is_err(), "{response:?}");
    }
}

/// Money that moved under our key, but not as we asked, settles nothing, whoever tells of it.
#[tokio::test]
async fn another_charge_or_refund_under_our_key_is_no_outcome() {
    let asked = charge("k1", 100, "pm_card_ok");
    let back = refund_of(&asked, "k1", 100);
    for (member, value) in [
        ("", ""),
        ("provider_key", r#""k2""#),
        ("reference", r#""ord_k2""#),
        ("reference", "null"),
        ("amount", r#"{"amount":99,"currency":"USD"}"#),
        ("amount", r#"{"amount":100,"currency":"EUR"}"#),
        ("amount", "null"),
        ("id", r#""ch_\u0000""#),
        ("id", r#""""#),
    ] {
        let entry = entry(member, value);
        let page = answered(said(&format!(r#"{{"data":[{entry}],"next":null}}"#))).await;
        let found = (page.charged(&asked).await.is_ok(), page.refunded(&back).await.is_ok());
        let client = answered(said(&entry)).await;
        let settled = [
            matches!(client.charge(&asked).await, Answer::Settled(_)),
            matches!(client.cancel_charge(&asked).await, Answer::Settled(_)),
            matches!(client.refund(&back).await, Answer::Settled(_)),
            matches!(client.cancel_refund(&back).await, Answer::Settled(_)),
        ];
        let right = member.is_empty();
        assert_eq!((found, settled), ((right, right), [right; 4]), "{member}: {value}");
    }
}

/// A charge and a refund alike, one member of it changed.
fn entry(member: &str, value: &str) -> String {
    let members = [
        ("id", r#""ch_1""#),
        ("provider_key", r#""k1""#),
        ("reference", r#""ord_k1""#),
        ("status", r#""succeeded""#),
        ("amount", r#"{"amount":100,"currency":"USD"}"#),
        ("created_at", r#""2026-01-01T00:00:00Z""#),
    ];
    let members = members.map(|(name, usual)| {
        let value = if name == member { value } else { usual };
        format!(r#""{name}":{value}"#)
    });
    format!("{{{}}}", members.join(","))
}

fn said(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}")
}
