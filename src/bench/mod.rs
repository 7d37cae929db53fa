//! Measuring: a published set of questions about one chain, asked in several ways, and their answers held against those
//! of others.
//!
//! Parameters come from the store's own statistics, so that the set works on any chain. This room knows the service as
//! paths and texts only: in the same process it asks the handler that the sockets ask. Nothing here opens a store or
//! binds a socket.

pub mod against;
pub mod answer;
mod body;
pub mod compare;
pub mod figures;
pub mod filter;
mod html;
mod html_tables;
pub mod load;
pub mod look;
mod machine;
pub mod measure;
pub mod measurement;
mod outcome;
mod pick;
mod plan;
pub mod question;
pub mod report;
#[cfg(test)]
mod report_tests;
pub mod sample;
pub mod session;
pub mod set;
pub mod statistics;
#[cfg(test)]
mod tests;
