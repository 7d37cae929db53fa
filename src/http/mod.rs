//! Transport: sockets, routing, parameters, errors, bodies.
//!
//! This room promises that every request gets one well-formed answer or a connection that breaks
//! visibly: refusals carry our JSON body, a panic is an internal error, a body that fails after its
//! first byte is aborted and never ends as if it were whole, and no blocking work ever runs on the
//! threads that own the sockets. hyper stops here. It knows no chain, no operation and no store.

mod accept;
mod body;
mod buffers;
mod caching;
mod client;
mod connection;
mod encoding;
mod error;
mod frame_source;
mod handler;
mod html;
mod lately;
mod limits;
mod mount;
mod mounts;
mod outgoing;
mod params;
mod parse;
mod pool;
mod rate;
mod recent;
mod rejection;
mod request_id;
mod response;
mod router;
mod server;
mod slow;
mod sockets;
mod stream;
mod traffic;
mod transport;
mod underway;
mod unsent;
mod upload;
mod vitals;

pub use hyper::{StatusCode, header};

pub use accept::prefers;
pub use body::{Body, BodyError};
pub use buffers::{FRAME_BYTES, FrameBuffer, FrameBuffers, LONG_FRAMES};
pub use caching::{Delivery, EntityTag, Lifetime};
pub use client::{ClientError, Connection, Got, ask, plain_address};
pub use error::{ErrorStatus, HttpError};
pub use frame_source::FrameSource;
pub use handler::{Handled, Handler, Request};
pub use html::Escaped;
pub use limits::Limits;
pub use mount::Mount;
pub use mounts::Mounts;
pub use outgoing::{Outgoing, REQUEST_TARGET};
pub use params::Params;
pub use parse::{Decimal, parse_address, parse_hash, parse_quantity, parse_u64};
pub use pool::{Lane, Pool, PoolError, PoolLimits};
pub use recent::Rate;
pub use request_id::RequestId;
pub use response::{Response, header_number, json_response};
pub use router::{Match, Router, percent_decode};
pub use server::serve;
pub use slow::{SLOW, SlowRequest};
pub use stream::stream_frames;
pub use traffic::{OperationFigures, Traffic, TrafficFigures};
pub use unsent::{Holding, SharedBody, Unsent};
