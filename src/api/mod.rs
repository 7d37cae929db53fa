//! The `api` room.
