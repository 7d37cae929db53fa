//! The `sync` room.
