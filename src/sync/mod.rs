//! The `sync` room.

pub mod authority;
mod encoding;
pub mod genesis;
pub mod verify;
