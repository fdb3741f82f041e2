//! The examples stand beside this file: `cargo run --example print_changes -- --help`.
