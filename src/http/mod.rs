//! The `http` room.
