//! The service over real sockets: transport behaviour, and everything that is decided before a
//! store is read.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "http/client.rs"]
mod client;
#[path = "http/documentation.rs"]
mod documentation;
#[path = "http/parameters.rs"]
mod parameters;
#[path = "http/transport.rs"]
mod transport;
