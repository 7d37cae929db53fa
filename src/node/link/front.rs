//! alloy's side of a connection: requests come out of it, and messages go into it.
//!
//! alloy passes an error over that names no request, so that whoever asked waits until the time is over, and is told nothing.
//! Here it goes to whom it may be of.

use super::life::Life;
use super::refusal::ErrorObject;
use super::reply::Reply;
use crate::node::error::head;
use crate::node::reader::read;
use alloy_json_rpc::{Id, PubSubItem, Response, ResponsePayload};
use alloy_pubsub::ConnectionInterface;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A connection as alloy sees it, with what is in flight over it.
pub(super) struct Front {
    interface: ConnectionInterface,
    /// Requests that were not answered yet.
    in_flight: BTreeSet<u64>,
    life: Arc<Life>,
}

/// What is looked at of a request.
#[derive(Deserialize)]
struct Sent {
    id: u64,
}

impl Front {
    pub(super) const fn new(interface: ConnectionInterface, life: Arc<Life>) -> Self {
        Self {
            interface,
            in_flight: BTreeSet::new(),
            life,
        }
    }

    /// The next request; `None` once nobody asks any more.
    pub(super) async fn request(&mut self) -> Option<Box<RawValue>> {
        let request = self.interface.recv_from_frontend().await?;
        if let Ok(Sent { id }) = serde_json::from_str(request.get()) {
            self.in_flight.insert(id);
        }
        Some(request)
    }

    /// Hands a message on; `false` where the connection is to be given up: it is none, or an error of nobody knows which request.
    pub(super) fn deliver(&mut self, message: &str) -> bool {
        self.life.message();
        match serde_json::from_str(message) {
            Err(_)
            | Ok(PubSubItem::Response(Response {
                id: Id::None,
                payload: ResponsePayload::Failure(_),
            })) => self.nameless(message),
            Ok(item) => {
                let is_awaited = match &item {
                    PubSubItem::Response(Response {
                        id: Id::Number(id), ..
                    }) => self.in_flight.remove(id),
                    PubSubItem::Response(_) => false,
                    PubSubItem::Notification(_) => true,
                };
                if is_awaited {
                    self.life.take();
                }
                self.send(item)
            }
        }
    }

    /// An error without the id of a request is of the one that is in flight, and one that asks for fewer requests of all. Any
    /// other may be of each: the connection is given up, so that all are asked again.
    fn nameless(&mut self, message: &str) -> bool {
        let reply = read::<Reply<'_>>(message).ok();
        let error = reply
            .filter(Reply::names_no_request)
            .and_then(|reply| reply.error);
        let Some(error) = error else {
            self.life
                .give_up(format!("a message that is no answer: {}", head(message)));
            return false;
        };
        let is_known = self.in_flight.len() <= 1 || error.asks_for_fewer();
        if !is_known || error.speaks_of_a_call("eth_call") {
            let in_flight = self.in_flight.len();
            let ErrorObject { code, message, .. } = &error;
            self.life.give_up(format!(
                "an error without the id of its request, {in_flight} being in flight: {code}: {}",
                head(message)
            ));
            return false;
        }
        std::mem::take(&mut self.in_flight).into_iter().all(|id| {
            let payload = ResponsePayload::Failure(error.payload());
            let id = Id::Number(id);
            self.send(PubSubItem::Response(Response { id, payload }))
        })
    }

    fn send(&self, item: PubSubItem) -> bool {
        self.interface.send_to_frontend(item).is_ok()
    }

    /// Tells alloy that the connection is lost.
    pub(super) fn lost(self) {
        self.interface.close_with_error();
    }
}
