//! `DELETE` of an object. It goes at once, unless finalizers or a grace period hold it.
//!
//! Counterparts: `rest.BeforeDelete` and `Store.Delete` in `k8s.io/apiserver/pkg/registry`.

use std::sync::Arc;

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Call;
use super::write::is_finished;
use crate::crds;
use crate::defaults::POD_GRACE;
use crate::failure::{self, Cause, Failure};
use crate::http::answer::Answer;
use crate::http::body::{MEDIA_TYPES, json_type, map};
use crate::http::options::Options;
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Document, Expect, Stored};
use crate::validation::quoted;

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Namespaces that every cluster needs.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// How an object is to be deleted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    kind: String,
    api_version: String,
    grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    preconditions: Option<Preconditions>,
    dry_run: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// What a deletion left.
pub(crate) struct Deletion {
    pub(crate) object: Arc<Stored>,
    pub(crate) gone: bool,
}

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    let options = DeleteOptions::of(&call)?;
    let is_namespace = call.kind.group.is_empty() && call.kind.plural == "namespaces";
    if is_namespace && IMMORTAL.contains(&call.name()) {
        return Err(Failure::forbidden(&call.kind, call.name(), "this namespace may not be deleted"));
    }
    options.warn(&call);
    let deletion = delete(&call.server, &call.kind, &call.key(), call.name(), &options)?;
    if deletion.gone && !call.kind.rules.returns_deleted {
        let uid = deletion.object.uid();
        return Ok(Answer::json(StatusCode::OK, failure::deleted(&call.kind, call.name(), uid)));
    }
    let accepted = !deletion.gone && options.orphan_dependents == Some(false);
    let status = if accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
    call.shown(status, &deletion.object)
}

impl DeleteOptions {
    /// From the body, if there is one, and else from the query.
    pub(super) fn of(call: &Call) -> Result<Self, Failure> {
        let (body, query) = (&call.body, &call.options);
        if !body.is_empty() && !matches!(call.media_type.as_str(), "" | "application/json") {
            return Err(Failure::unsupported_media_type(&MEDIA_TYPES));
        }
        // Whoever sends a body has said everything in it.
        let options = match body.is_empty() {
            false => Self::from_body(body)?,
            true => Self {
                grace_period_seconds: query.grace_period_seconds,
                propagation_policy: query.propagation_policy.clone(),
                orphan_dependents: query.orphan_dependents,
                dry_run: query.dry_run.clone(),
                ..Self::default()
            },
        };
        options.checked()
    }

    /// Tells whoever deletes jobs without a word about their pods that these stay.
    pub(super) fn warn(&self, call: &Call) {
        let is_job = (call.kind.group.as_str(), call.kind.plural.as_str()) == ("batch", "jobs");
        if is_job && self.propagation_policy.is_none() && self.orphan_dependents.is_none() {
            call.warnings.add(
                "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
                 them or set propagationPolicy=Orphan to suppress this warning",
            );
        }
    }

    /// The options, if they make sense.
    fn checked(self) -> Result<Self, Failure> {
        let options = self;
        Options { dry_run: options.dry_run.clone(), ..Options::default() }.is_dry_run("DeleteOptions")?;
        let known = ["Foreground", "Background", "Orphan"];
        if let Some(policy) = options.propagation_policy.as_deref().filter(|policy| !known.contains(policy)) {
            let supported = ["Foreground", "Background", "Orphan", "nil"];
            let cause = Cause::unsupported("propagationPolicy", quoted(policy), &supported);
            return Err(Failure::invalid_options("DeleteOptions", vec![cause]));
        }
        if let (Some(policy), Some(_)) = (&options.propagation_policy, options.orphan_dependents) {
            let text = "orphanDependents and deletionPropagation cannot be both set";
            let cause = Cause::invalid("propagationPolicy", quoted(policy), text);
            return Err(Failure::invalid_options("DeleteOptions", vec![cause]));
        }
        Ok(options)
    }

    /// What a controller asks for that means this very object.
    pub(crate) fn of_controller(policy: &str, uid: &str) -> Self {
        let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        Self { propagation_policy: Some(policy.to_owned()), preconditions: Some(preconditions), ..Self::default() }
    }

    fn from_body(body: &[u8]) -> Result<Self, Failure> {
        Self::from_tree(map(body).map_err(Failure::bad_request)?)
    }

    /// From a part of something else, with the dry run of the request.
    pub(super) fn of_value(value: Value, dry_run: &[String]) -> Result<Self, Failure> {
        let tree = if value.is_null() { json!({}) } else { value };
        let mut options = Self::from_tree(tree)?;
        if options.dry_run.is_empty() {
            options.dry_run = dry_run.to_vec();
        }
        options.checked()
    }

    /// What was meant in a version that was just replaced is meant in the new one.
    pub(super) fn follow(&mut self, revision: u64) {
        if let Some(Preconditions { resource_version: Some(version), .. }) = &mut self.preconditions {
            *version = revision.to_string();
        }
    }

    pub(super) fn is_dry_run(&self) -> bool {
        !self.dry_run.is_empty()
    }

    fn from_tree(mut tree: Value) -> Result<Self, Failure> {
        // In Go, what is null is not there.
        if let Value::Object(map) = &mut tree {
            map.retain(|_, value| !value.is_null());
        }
        if let Some(text) = wrong_type(&tree) {
            return Err(Failure::bad_request(text));
        }
        let options: Self = serde_json::from_value(tree)
            .map_err(|_| Failure::bad_request("json: cannot unmarshal the body into Go value of type DeleteOptions"))?;
        if !matches!(options.kind.as_str(), "" | "DeleteOptions") {
            return Err(Failure::bad_request(format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
                quoted(&options.kind),
                quoted(&options.api_version)
            )));
        }
        Ok(options)
    }

    pub(super) fn check(&self, kind: &Kind, name: &str, current: &Stored) -> Result<(), Failure> {
        let Some(preconditions) = &self.preconditions else { return Ok(()) };
        let conflict = |text: String| Err(Failure::conflict(&kind.kind, &kind.group, name, text));
        if let Some(uid) = preconditions.uid.as_deref().filter(|uid| *uid != current.uid()) {
            return conflict(format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
                 deleted and then recreated",
                current.uid()
            ));
        }
        let revision = current.revision().to_string();
        if let Some(asked) = preconditions.resource_version.as_deref().filter(|asked| *asked != revision) {
            return conflict(format!(
                "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record \
                 ({revision}). The object might have been modified"
            ));
        }
        Ok(())
    }

    /// The finalizers with which an object's dependents are waited for, or let go.
    fn apply_policy(&self, kind: &Kind, document: &mut Document) {
        let is_decided = || document.finalizers().iter().any(|finalizer| [ORPHAN, FOREGROUND].contains(finalizer));
        let policy = match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), _) => policy,
            (None, Some(true)) => "Orphan",
            (None, Some(false)) => "Background",
            (None, None) if orphans_by_default(kind) && !is_decided() => "Orphan",
            (None, None) => return,
        };
        let wanted = match policy {
            "Orphan" => Some(ORPHAN),
            "Foreground" => Some(FOREGROUND),
            _ => None,
        };
        let mut finalizers: Vec<String> = document
            .finalizers()
            .into_iter()
            .filter(|f| ![ORPHAN, FOREGROUND].contains(f))
            .map(str::to_owned)
            .collect();
        finalizers.extend(wanted.map(str::to_owned));
        match finalizers.is_empty() {
            true => drop(document.metadata_mut().remove("finalizers")),
            false => document.set_meta("finalizers", finalizers),
        }
    }
}

/// Whether a value has the type that it should.
type Fits = fn(&Value) -> bool;

/// What Go says of the first option that has another type than it should.
fn wrong_type(tree: &Value) -> Option<String> {
    let is_number = |value: &Value| value.is_i64();
    let is_list = |value: &Value| value.as_array().is_some_and(|values| values.iter().all(Value::is_string));
    let types: [(&str, &str, Fits); 5] = [
        ("gracePeriodSeconds", "int64", is_number),
        ("preconditions", "v1.Preconditions", Value::is_object),
        ("orphanDependents", "bool", Value::is_boolean),
        ("propagationPolicy", "v1.DeletionPropagation", Value::is_string),
        ("dryRun", "[]string", is_list),
    ];
    types.iter().find_map(|(field, go_type, fits)| {
        let value = tree.get(field).filter(|value| !fits(value))?;
        let found = json_type(value);
        Some(format!("json: cannot unmarshal {found} into Go struct field DeleteOptions.{field} of type {go_type}"))
    })
}

/// Kinds that leave behind what belongs to them, unless somebody says otherwise.
fn orphans_by_default(kind: &Kind) -> bool {
    matches!((kind.group.as_str(), kind.plural.as_str()), ("batch", "jobs") | ("", "replicationcontrollers"))
}

/// Deletes an object, or begins to.
pub(crate) fn delete(
    server: &Inner,
    kind: &Arc<Kind>,
    key: &str,
    name: &str,
    options: &DeleteOptions,
) -> Result<Deletion, Failure> {
    let dry_run = !options.dry_run.is_empty();
    loop {
        let current = server.storage.get(kind, key).ok_or_else(|| Failure::not_found(kind, name))?;
        options.check(kind, name, &current)?;
        let old = current.document_as(kind);
        let mut next = old.clone();
        options.apply_policy(kind, &mut next);
        let step = mark(server, kind, &mut next, options);
        let preview = |gone| {
            let object = Arc::new(Stored::preview(kind, key, &next, Some(current.revision())));
            Ok(Deletion { object, gone })
        };
        match step {
            Step::Wait if next == old => return Ok(Deletion { object: current, gone: false }),
            Step::Wait if dry_run => return preview(false),
            Step::Remove | Step::MarkAndRemove if dry_run => return preview(true),
            Step::Wait => {
                if let Ok(object) = server.storage.put(kind, key, &next, Expect::Revision(current.revision())) {
                    return Ok(Deletion { object, gone: false });
                }
            }
            Step::Remove => {
                if let Ok(revision) = server.storage.delete(kind, key, Expect::Revision(current.revision())) {
                    return Ok(Deletion { object: Arc::new(current.stamped(revision)), gone: true });
                }
            }
            Step::MarkAndRemove => {
                let marked = server.storage.put(kind, key, &next, Expect::Revision(current.revision()));
                if let Ok(marked) = marked
                    && let Ok(revision) = server.storage.delete(kind, key, Expect::Revision(marked.revision()))
                {
                    return Ok(Deletion { object: Arc::new(marked.stamped(revision)), gone: true });
                }
            }
        }
    }
}

/// Deletes an object as a request without options does. That somebody else was faster is just as good.
pub(crate) fn remove_object(server: &Inner, kind: &Arc<Kind>, object: &Stored) {
    let _ = delete(server, kind, object.key(), object.name(), &DeleteOptions::default());
}

/// What becomes of an object that is to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It is written with its marks, and waits for somebody to finish.
    Wait,
    /// It goes.
    Remove,
    /// It is written with its marks, and then goes: what pods do without a grace period.
    MarkAndRemove,
}

/// Marks an object as one that is being deleted.
fn mark(server: &Inner, kind: &Kind, document: &mut Document, options: &DeleteOptions) -> Step {
    match (kind.group.as_str(), kind.plural.as_str()) {
        _ if crds::is_definition(kind) => {
            crds::begin_deletion(document, &server.clock.now());
            Step::Wait
        }
        ("", "pods") => mark_pod(server, document, options),
        ("", "namespaces") => mark_namespace(server, kind, document),
        _ if document.finalizers().is_empty() => Step::Remove,
        _ => {
            if !document.is_deleting() {
                set_marks(document, server.clock.now(), Some(0));
            }
            Step::Wait
        }
    }
}

fn mark_pod(server: &Inner, document: &mut Document, options: &DeleteOptions) -> Step {
    let asked = options.grace_period_seconds.map(not_negative);
    let grace = match (document.is_deleting(), document.grace_period().unwrap_or_default()) {
        (true, 0) if document.finalizers().is_empty() => return Step::Remove,
        (true, current) => {
            // A grace period can only become shorter.
            let Some(asked) = asked.filter(|asked| *asked < current) else { return Step::Wait };
            let time = server.clock.moved(document.meta("deletionTimestamp"), asked - current);
            document.set_meta("deletionTimestamp", time);
            document.set_meta("deletionGracePeriodSeconds", asked);
            asked
        }
        (false, _) => {
            let grace = pod_grace(document, asked);
            set_marks(document, server.clock.after(grace), Some(grace));
            grace
        }
    };
    let is_held = grace > 0 || !document.finalizers().is_empty();
    if is_held { Step::Wait } else { Step::MarkAndRemove }
}

/// A pod that runs nowhere, or no more, needs no grace.
fn pod_grace(document: &Document, asked: Option<i64>) -> i64 {
    let text = |pointer: &str| document.as_value().pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Failed" | "Succeeded") {
        return 0;
    }
    let own = document.as_value().pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    not_negative(asked.or(own).unwrap_or(POD_GRACE))
}

/// A negative grace period counts as a second.
fn not_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// A namespace waits until its content is gone; who removes that, finalizes it.
fn mark_namespace(server: &Inner, kind: &Kind, document: &mut Document) -> Step {
    if !document.is_deleting() {
        set_marks(document, server.clock.now(), None);
        let status = document.map_mut().entry("status").or_insert_with(|| json!({}));
        if let Value::Object(status) = status {
            status.insert("phase".to_owned(), "Terminating".into());
        }
    }
    if is_finished(kind, document) { Step::Remove } else { Step::Wait }
}

fn set_marks(document: &mut Document, time: String, grace: Option<i64>) {
    document.set_meta("deletionTimestamp", time);
    if let Some(grace) = grace {
        document.set_meta("deletionGracePeriodSeconds", grace);
    }
    // Whoever counts changes counts this one too.
    if document.generation() > 0 {
        document.set_meta("generation", document.generation().wrapping_add(1));
    }
}
