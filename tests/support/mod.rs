//! What integration tests share.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod build;
pub mod chain;
pub mod data;
pub mod fake_node;
pub mod render;
