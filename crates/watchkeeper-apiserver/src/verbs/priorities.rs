//! Which pods go before others.
//!
//! Counterpart: the admission plugin `Priority` in `k8s.io/kubernetes/plugin/pkg/admission/priority`.

use serde_json::{Value, json};

use super::Call;
use crate::failure::Failure;
use crate::storage::Document;

/// What a class says: its name, how much it counts, and whom its pods may take the place of.
type Class = (String, i64, String);

const PREEMPT: &str = "PreemptLowerPriority";

/// Gives a new pod the priority of its class. It may not name another one itself.
pub(super) fn assign(call: &Call, pod: &mut Document) -> Result<(), Failure> {
    let name = pod.meta("name").to_owned();
    let Some(Value::Object(spec)) = pod.map_mut().get_mut("spec") else { return Ok(()) };
    let asked = spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default();
    let (class, priority, preemption) = match asked {
        "" => default_class(call).unwrap_or_else(|| (String::new(), 0, PREEMPT.to_owned())),
        asked => class(call, asked).ok_or_else(|| {
            Failure::forbidden(&call.kind, &name, format_args!("no PriorityClass with name {asked} was found"))
        })?,
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        let text = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        );
        return Err(Failure::forbidden(&call.kind, &name, text));
    }
    if let Some(given) = spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != preemption) {
        let text = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {preemption} from the given PriorityClass name"
        );
        return Err(Failure::forbidden(&call.kind, &name, text));
    }
    if !class.is_empty() {
        spec.insert("priorityClassName".to_owned(), class.into());
    }
    spec.insert("priority".to_owned(), priority.into());
    spec.insert("preemptionPolicy".to_owned(), preemption.into());
    Ok(())
}

/// A pod keeps the priority that it was given, if an update does not name one.
pub(super) fn keep(old: &Document, pod: &mut Document) {
    let Some(Value::Object(spec)) = pod.map_mut().get_mut("spec") else { return };
    for field in ["priority", "preemptionPolicy"] {
        if let Some(value) = old.as_value().pointer(&format!("/spec/{field}")) {
            spec.entry(field).or_insert_with(|| value.clone());
        }
    }
}

/// A class by its name. Two are in every cluster.
fn class(call: &Call, name: &str) -> Option<Class> {
    let built_in = match name {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    };
    if let Some(priority) = built_in {
        return Some((name.to_owned(), priority, PREEMPT.to_owned()));
    }
    let kind = call.server.registry.find("scheduling.k8s.io", "priorityclasses")?;
    call.server.storage.get(&kind, name).map(|class| read(name, class.document().as_value()))
}

/// The class of pods that name none: of several, the one that counts least.
fn default_class(call: &Call) -> Option<Class> {
    let kind = call.server.registry.find("scheduling.k8s.io", "priorityclasses")?;
    let classes = call.server.storage.objects(&kind);
    let classes = classes.iter().map(|class| (class.name().to_owned(), class.document()));
    let defaults = classes.filter(|(_, class)| class.as_value().get("globalDefault") == Some(&json!(true)));
    defaults.map(|(name, class)| read(&name, class.as_value())).min_by_key(|(_, priority, _)| *priority)
}

fn read(name: &str, class: &Value) -> Class {
    let preemption = class.get("preemptionPolicy").and_then(Value::as_str).unwrap_or(PREEMPT);
    (name.to_owned(), class.get("value").and_then(Value::as_i64).unwrap_or_default(), preemption.to_owned())
}
