//! Answers without a connection: for whoever has a server, and mounts ours in it.

use std::sync::Arc;

use bytes::Bytes;

use super::handler::Handler;
use super::limits::Limits;
use super::traffic::Traffic;
use super::transport::{Outgoing, Upload, respond};
use super::vitals::Vitals;

/// A handler behind the rules that hold for every request (sizes, methods, CORS, ids, the fence against panics), and no
/// socket. Connections, slow clients and rates are the business of the server that it is mounted in.
pub struct Mount<H> {
    handler: Arc<H>,
    limits: Arc<Limits>,
    traffic: Arc<Traffic>,
}

impl<H> Clone for Mount<H> {
    fn clone(&self) -> Self {
        Self {
            handler: Arc::clone(&self.handler),
            limits: Arc::clone(&self.limits),
            traffic: Arc::clone(&self.traffic),
        }
    }
}

impl<H: Handler> Mount<H> {
    /// Mounts `handler`.
    #[must_use]
    pub fn new(handler: Arc<H>, limits: Limits) -> Self {
        Self {
            traffic: handler.traffic(),
            handler,
            limits: Arc::new(limits),
        }
    }

    /// Answers a request; a body that it may have is not looked at.
    pub async fn answer<B>(&self, request: hyper::Request<B>) -> hyper::Response<Outgoing> {
        self.respond(request.map(|_| Upload::None)).await
    }

    /// Answers a request with its body, which is looked at where POST is spoken.
    pub async fn answer_upload(&self, request: hyper::Request<Bytes>) -> hyper::Response<Outgoing> {
        self.respond(request.map(Upload::Held)).await
    }

    async fn respond(&self, request: hyper::Request<Upload>) -> hyper::Response<Outgoing> {
        respond(
            &*self.handler,
            &self.limits,
            &Vitals::new(),
            &self.traffic,
            true,
            request,
        )
        .await
    }
}
