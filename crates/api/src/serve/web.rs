//! The HTTP server: how many threads, how it ends.

use std::io;
use std::net::TcpListener;

use actix_web::dev::{Server, Service, ServiceResponse};
use actix_web::http::ConnectionType;
use actix_web::{App, HttpResponse, HttpServer, web};

use crate::config::Settings;
use crate::stop::Stop;

pub(super) fn server(listener: TcpListener, settings: &Settings, stop: Stop) -> io::Result<Server> {
    let grace = settings.timing.grace.as_secs().max(1);
    let server = HttpServer::new(move || {
        let stop = stop.clone();
        App::new()
            .wrap_fn(move |request, next| {
                let stop = stop.clone();
                let answer = next.call(request);
                async move { answer.await.map(|answer| last_if_stopping(answer, &stop)) }
            })
            .route("/healthz", web::get().to(HttpResponse::Ok))
    })
    .disable_signals()
    .shutdown_timeout(grace);
    let server = match settings.workers {
        Some(workers) => server.workers(workers),
        None => server,
    };
    Ok(server.listen(listener)?.run())
}

/// Clients that keep their connection would otherwise feed a stopping server until it is cut off.
fn last_if_stopping<B>(mut answer: ServiceResponse<B>, stop: &Stop) -> ServiceResponse<B> {
    if stop.is_asked() {
        answer.response_mut().head_mut().set_connection_type(ConnectionType::Close);
    }
    answer
}
