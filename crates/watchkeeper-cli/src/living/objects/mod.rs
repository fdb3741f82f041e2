//! What do the objects of a cluster look like? One file for each kind. The same functions make the settled objects of the
//! beginning and what the controllers want later, so that these find nothing to do at first.

pub(super) mod config;
pub(super) mod deployment;
pub(super) mod event;
pub(super) mod job;
pub(super) mod namespace;
pub(super) mod node;
pub(super) mod pod;
pub(super) mod pod_status;
pub(super) mod replica_set;
pub(super) mod service;
pub(super) mod slice;

use serde_json::Value;

/// Where the label stands by which everything of one application is found.
pub(super) const NAME_LABEL: &str = "app.kubernetes.io/name";
/// The label that tells the pods of one template from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// The same number for the same text, everywhere and always (FNV-1a).
pub(super) fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Puts a value somewhere in an object that is one all the way.
pub(super) fn set(object: &mut Value, path: &[&str], value: impl Into<Value>) {
    let mut place = object;
    for step in path {
        // Whatever else was there makes room.
        if !place.is_object() {
            *place = Value::Object(serde_json::Map::new());
        }
        place = &mut place[*step];
    }
    *place = value.into();
}
