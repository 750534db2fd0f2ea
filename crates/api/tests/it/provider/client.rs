//! What the client concludes from a provider that misbehaves.

use std::time::Duration;

use api::provider::client::{Answer, ProviderClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{charge, free_listener, http};

/// A client whose provider answers every request with these bytes and hangs up.
async fn answered(response: &'static str) -> ProviderClient {
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

#[tokio::test]
async fn somebody_elses_charge_is_no_answer() {
    let foreign = concat!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n",
        r#"{"id":"ch_1","provider_key":"k2","reference":"ord_k1","status":"succeeded","#,
        r#""amount":{"amount":100,"currency":"USD"},"created_at":"2026-01-01T00:00:00Z"}"#
    );
    let client = answered(foreign).await;
    let answer = client.charge(&charge("k1", 100, "pm_card_ok")).await;
    assert!(matches!(answer, Answer::Lost { .. }), "{answer:?}");
    let answer = client.charge(&charge("k2", 99, "pm_card_ok")).await;
    assert!(matches!(answer, Answer::Lost { .. }), "{answer:?}");
    let answer = client.charge(&charge("k2", 100, "pm_card_ok")).await;
    assert!(matches!(answer, Answer::Settled(_)), "{answer:?}");
}
