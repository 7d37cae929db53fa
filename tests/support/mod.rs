//! What integration tests share.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod data;
