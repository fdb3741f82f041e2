//! The specs of volumes.

use serde_json::Value;

use super::{Causes, is_empty};

/// All that a volume can be of.
const SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// What is wrong with the spec of a volume.
pub(super) fn check(spec: &Value, causes: &mut Causes) {
    if is_empty(spec, "accessModes") {
        causes.required("spec.accessModes", "");
    }
    if is_empty(spec, "capacity") {
        causes.required("spec.capacity", "");
    }
    if SOURCES.iter().all(|source| spec.get(source).is_none_or(Value::is_null)) {
        causes.required("spec", "must specify a volume type");
    }
}
