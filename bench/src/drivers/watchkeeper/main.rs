//! drivers/watchkeeper

fn main() {}
