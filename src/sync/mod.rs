//! The `sync` room.

pub mod authority;
pub mod derive;
mod encoding;
pub mod genesis;
pub mod verify;
