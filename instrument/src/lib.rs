//! Rewrites Java classes so that they report what their objects do.

pub mod rewrite;
