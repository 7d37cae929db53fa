//! The `query` room.
