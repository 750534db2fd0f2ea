//! What the pool lends: never a stranger's transaction, and nothing that is dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::db::Db;
use reqwest::Url;
use sqlx::{Executor, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::app::eventually;
use crate::postgres::TestDatabase;

const CONNECTIONS: usize = 2;
const LATENCY: u64 = 300;

/// A wire on which everything takes so many milliseconds, both ways.
async fn slow_wire(database: &TestDatabase, latency_ms: &Arc<AtomicU64>) -> String {
    let mut url = Url::parse(&database.url).unwrap();
    let server = url.port().expect("the tests' server listens on a port");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    let latency_ms = Arc::clone(latency_ms);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { continue };
            let ((from, to), (back, home)) = (client.into_split(), server.into_split());
            tokio::spawn(carry(from, home, Arc::clone(&latency_ms)));
            tokio::spawn(carry(back, to, Arc::clone(&latency_ms)));
        }
    });
    url.into()
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, latency_ms: Arc<AtomicU64>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        tokio::time::sleep(Duration::from_millis(latency_ms.load(Ordering::Relaxed))).await;
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_begin_that_is_dropped_on_the_wire_leaves_nobody_in_a_strangers_transaction() {
    let database = TestDatabase::new().await;
    let latency_ms = Arc::new(AtomicU64::new(0));
    let db = Db::new(&slow_wire(&database, &latency_ms).await, CONNECTIONS, 1).unwrap();
    for _ in 0..CONNECTIONS {
        db.connection().await.unwrap().done();
    }
    latency_ms.store(LATENCY, Ordering::Relaxed);
    let mut dropped = 0;
    for number in 0..20 {
        let patience = Duration::from_millis(50 + 5 * number);
        let work = async { db.begin().await.unwrap().execute("select 1").await };
        dropped += usize::from(timeout(patience, work).await.is_err());
    }
    assert_eq!(dropped, 20, "all of them were dropped while a word was on the wire");
    latency_ms.store(0, Ordering::Relaxed);

    let mut look = database.connect().await;
    look.execute("create table seen (number int)").await.unwrap();
    for number in 0..50 {
        let insert = sqlx::query("insert into seen values ($1)").bind(number);
        let mut conn = db.connection().await.unwrap();
        let inserted = insert.execute(&mut *conn).await;
        conn.end(inserted).unwrap();
    }
    let seen: i64 =
        sqlx::query_scalar("select count(*) from seen").fetch_one(&mut look).await.unwrap();
    assert_eq!(seen, 50, "each was a transaction of its own");
    let open = "select count(*) from pg_stat_activity where datname = current_database()
                and state like 'idle in transaction%'";
    eventually("no transaction is left open", async || {
        let mut look = database.connect().await;
        sqlx::query_scalar::<_, i64>(open).fetch_one(&mut look).await.unwrap() == 0
    })
    .await;
    assert_eq!(db.usage().0, 0);
}

/// What was open when the server went away is dead, also what was out on loan at that moment.
#[tokio::test]
async fn a_connection_from_before_the_server_went_away_is_never_lent_again() {
    let database = TestDatabase::new().await;
    let db = Db::new(&database.url, CONNECTIONS, 1).unwrap();
    let first = used(&db).await;
    let mut before = db.connection().await.unwrap();
    assert_eq!(process(&mut before).await, first, "what came back in order is lent again");
    db.forget_idle();
    before.done();
    assert_ne!(used(&db).await, first);
}

/// Nobody has noticed yet that it is dead: whoever borrows it first does not pay for that.
#[tokio::test]
async fn a_connection_that_died_while_it_lay_idle_is_not_lent() {
    let database = TestDatabase::new().await;
    let db = Db::new(&database.url, CONNECTIONS, 1).unwrap();
    let first = used(&db).await;
    let mut look = database.connect().await;
    let end = sqlx::query_scalar("select pg_terminate_backend($1)").bind(first);
    let ended: bool = end.fetch_one(&mut look).await.unwrap();
    assert!(ended);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_ne!(used(&db).await, first);
}

/// Borrows a connection and gives it back; which process of the server it leads to.
async fn used(db: &Db) -> i32 {
    let mut conn = db.connection().await.unwrap();
    let process = process(&mut conn).await;
    conn.done();
    process
}

async fn process(conn: &mut PgConnection) -> i32 {
    sqlx::query_scalar("select pg_backend_pid()").fetch_one(conn).await.unwrap()
}
