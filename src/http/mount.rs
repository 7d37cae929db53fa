//! Answers without a connection: for whoever has a server, and mounts ours in it.

use std::sync::Arc;

use bytes::Bytes;

use super::handler::Handler;
use super::limits::Limits;
use super::outgoing::Outgoing;
use super::transport::{Service, respond};
use super::upload::Upload;
use super::vitals::Vitals;

/// A handler behind the rules that hold for every request (sizes, methods, CORS, ids, the fence against panics), and no
/// socket. Connections, slow clients and rates are the business of the server that it is mounted in.
pub struct Mount<H>(Arc<Service<H>>);

impl<H> Clone for Mount<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H: Handler> Mount<H> {
    /// Mounts `handler`.
    #[must_use]
    pub fn new(handler: Arc<H>, limits: Limits) -> Self {
        Self(Arc::new(Service {
            traffic: handler.traffic(),
            handler,
            limits: Arc::new(limits),
        }))
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
        let responding = respond(&self.0, &Vitals::new(), true, request);
        responding.answer().await
    }
}
