//! compare

fn main() {}
