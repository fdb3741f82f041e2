//! Pods as clients see them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use crate::pods::Pods;
use crate::templates::Format;
use crate::values::{FRESH, version};

fn json(pods: &Pods, number: u32, revision: u64) -> Vec<u8> {
    let mut bytes = b"{".to_vec();
    pods.body(number, Format::Json).fill(number, revision, &mut bytes);
    bytes
}

fn contains(bytes: &[u8], part: &str) -> bool {
    bytes.windows(part.len()).any(|window| window == part.as_bytes())
}
