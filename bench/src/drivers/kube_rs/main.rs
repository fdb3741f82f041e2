//! drivers/kube_rs

fn main() {}
