//! The same order again and again, and goods that many want.

use std::sync::atomic::{AtomicBool, Ordering};

use super::ORDERS;
use crate::app::{Response, TestApp, basket, together};

fn count(answers: &[Response], status: u16) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[tokio::test]
async fn two_hundred_copies_at_two_servers_make_one_order() {
    let app = TestApp::with(|options| options.connections(5)).await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    let body = basket(&[("enamel-mug", 1), ("order-book", 2)]);
    let copies = (0..200).map(|copy| {
        let caller = if copy % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
        let body = body.clone();
        async move { caller.post(ORDERS, "K", &body).await }
    });
    let answers = together(copies).await;
    for answer in &answers {
        answer.clone().expect(201).equals(&answers[0]);
    }
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    assert_eq!(app.number(r#"select count(*) from "order""#).await, 1);
    assert_eq!(app.stock("enamel-mug").await, 399);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn fifty_buyers_of_ten_pieces_get_ten() {
    let app = TestApp::start().await;
    let second = app.second_server().await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 10).await;
    app.set_stock("signing-pen", 10).await;
    app.set_stock("counter-bell", 1).await;
    for (sku, quantity, sold) in
        [("night-lamp", 1, 10), ("signing-pen", 3, 3), ("counter-bell", 1, 1)]
    {
        let buyers = (0..50).map(|buyer| {
            let caller = if buyer % 2 == 0 { shopper.clone() } else { shopper.on(&second) };
            async move {
                caller.post(ORDERS, &format!("{sku}{buyer}"), &basket(&[(sku, quantity)])).await
            }
        });
        let answers = together(buyers).await;
        assert_eq!(count(&answers, 201), sold, "{sku}");
        for answer in answers.into_iter().filter(|answer| answer.status != 201) {
            let refused = answer.problem(409, "out_of_stock").json();
            assert_eq!(refused["sku"], sku);
        }
    }
    assert_eq!(app.stock("night-lamp").await, 0);
    assert_eq!(app.stock("signing-pen").await, 1);
    second.stop().await;
    app.finish().await;
}

#[tokio::test]
async fn baskets_in_opposite_order_do_not_lock_each_other_out() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let there = [("enamel-mug", 1), ("order-book", 1), ("counter-bell", 1)];
    let back = [("counter-bell", 1), ("order-book", 1), ("enamel-mug", 1)];
    let orders = (0..40).map(|buyer| {
        let (caller, lines) = (shopper.clone(), if buyer % 2 == 0 { there } else { back });
        async move { caller.post(ORDERS, &format!("K{buyer}"), &basket(&lines)).await }
    });
    let answers = together(orders).await;
    assert_eq!(count(&answers, 201), 40, "{answers:?}");
    assert_eq!(app.stock("order-book").await, 590);
    app.finish().await;
}

#[tokio::test]
async fn a_refusal_is_final_for_its_key_even_when_goods_come_back() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 1).await;
    let only = shopper.ordered("first", &[("night-lamp", 1)]).await;
    let body = basket(&[("night-lamp", 1)]);
    let refused = shopper.post(ORDERS, "K1", &body).await.problem(409, "out_of_stock");
    let cancel = format!("/v1/orders/{}/cancel", only["id"].as_str().unwrap());
    shopper.post_empty(&cancel, "C").await.expect(200);
    shopper.post(ORDERS, "K2", &body).await.expect(201);
    shopper.post(ORDERS, "K1", &body).await.replays(&refused);
    assert_eq!(app.stock("night-lamp").await, 0);
    app.finish().await;
}

#[tokio::test]
async fn goods_that_come_and_go_never_make_the_server_fail() {
    let app = TestApp::with(|options| options.connections(8)).await;
    let shopper = app.shopper().await;
    app.set_stock("night-lamp", 2).await;
    let buyers = (0..12).map(|buyer| {
        let shopper = shopper.clone();
        async move {
            for round in 0..6 {
                let key = format!("{buyer}-{round}");
                let answer = shopper.post(ORDERS, &key, &basket(&[("night-lamp", 1)])).await;
                if answer.status == 201 {
                    let cancel = format!("/v1/orders/{}/cancel", answer.text("id"));
                    shopper.post_empty(&cancel, &format!("{key}-cancel")).await.expect(200);
                } else {
                    answer.problem(409, "out_of_stock");
                }
            }
        }
    });
    together(buyers).await;
    assert_eq!(app.stock("night-lamp").await, 2);
    app.finish().await;
}

#[tokio::test]
async fn whoever_asks_while_the_stock_flickers_is_told_yes_or_no() {
    let app = TestApp::start().await;
    let shopper = app.shopper().await;
    let over = AtomicBool::new(false);
    let flickers = async {
        let mut conn = app.database.connect().await;
        while !over.load(Ordering::Relaxed) {
            for stock in [0, 1, 2, 3] {
                sqlx::query(
                    "update product set initial_stock = initial_stock - stock + $1, stock = $1
                     where sku = 'night-lamp'",
                )
                .bind(stock)
                .execute(&mut conn)
                .await
                .unwrap();
            }
        }
    };
    let orders = async {
        for round in 0..25 {
            let orders = (0..16).map(|buyer| {
                let shopper = shopper.clone();
                let key = format!("{buyer}-{round}");
                async move { shopper.post(ORDERS, &key, &basket(&[("night-lamp", 1)])).await }
            });
            for answer in together(orders).await.into_iter().filter(|answer| answer.status != 201) {
                answer.problem(409, "out_of_stock");
            }
        }
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(flickers, orders);
    app.finish().await;
}
