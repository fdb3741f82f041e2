//! Volumes, claims, classes and drivers.

use serde_json::Value;

use super::subject::Subject;
use super::{NONE, UNSET, quantity};

/// The phase, unless it is on its way out.
pub(super) fn phase(volume: Subject<'_>) -> Value {
    if volume.is_deleting() { "Terminating".into() } else { volume.text("/status/phase").into() }
}

/// `RWO,ROX`: in which ways a volume can be used.
pub(super) fn volume_access_modes(volume: Subject<'_>) -> Value {
    access_modes(volume, "/spec/accessModes")
}

/// In which ways a claim's volume can be used; nothing, as long as it has none.
pub(super) fn claim_access_modes(claim: Subject<'_>) -> Value {
    if is_bound(claim) { access_modes(claim, "/status/accessModes") } else { "".into() }
}

/// How much a claim's volume has room for; nothing, as long as it has none.
pub(super) fn claim_capacity(claim: Subject<'_>) -> Value {
    if is_bound(claim) { quantity::shown(claim.at("/status/capacity/storage")).into() } else { "".into() }
}

/// `namespace/name` of the claim that a volume belongs to.
pub(super) fn claim(volume: Subject<'_>) -> Value {
    match volume.part("/spec/claimRef") {
        Some(claim) => format!("{}/{}", claim.text("/namespace"), claim.text("/name")).into(),
        None => "".into(),
    }
}

/// The class; the annotation from before there was a field counts more.
pub(super) fn class(volume: Subject<'_>) -> Value {
    let annotated = volume.annotation("volume.beta.kubernetes.io/storage-class");
    annotated.unwrap_or_else(|| volume.text("/spec/storageClassName")).into()
}

/// The name, and whether it is the default.
pub(super) fn storage_class_name(class: Subject<'_>) -> Value {
    let names = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
    let is_default = names.iter().any(|name| class.annotation(name) == Some("true"));
    format!("{}{}", class.text("/metadata/name"), if is_default { " (default)" } else { "" }).into()
}

/// Whom a driver asks tokens for.
pub(super) fn token_audiences(driver: Subject<'_>) -> Value {
    if driver.at("/spec/tokenRequests").is_none() {
        return UNSET.into();
    }
    let audiences: Vec<&str> = driver.list("/spec/tokenRequests").map(|request| request.text("/audience")).collect();
    audiences.join(",").into()
}

/// How long a driver's volumes live.
pub(super) fn lifecycle_modes(driver: Subject<'_>) -> Value {
    let modes = driver.texts("/spec/volumeLifecycleModes").join(",");
    if modes.is_empty() { NONE.into() } else { modes.into() }
}

fn is_bound(claim: Subject<'_>) -> bool {
    !claim.text("/spec/volumeName").is_empty()
}

/// Always in this order, whatever order they were given in.
fn access_modes(volume: Subject<'_>, pointer: &str) -> Value {
    let given = volume.texts(pointer);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let shown: Vec<&str> = known.iter().filter(|(mode, _)| given.contains(mode)).map(|(_, short)| *short).collect();
    shown.join(",").into()
}
