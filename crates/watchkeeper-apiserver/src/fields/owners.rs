//! What a write does to those who own fields. Counterpart: `merge/update.go` of structured-merge-diff.

use serde_json::Value;

use super::collect::fields;
use super::compare::Comparison;
use super::entry::{Entry, Owner, cap};
use super::merge::merged;
use super::remove::without;
use super::reset::{STRIPPED, reset};
use super::set::Set;
use super::typed::BadItem;
use super::value::same;
use crate::kinds::Kind;
use crate::schema::SchemaRef;

/// A write: whose, of what kind, and when.
pub(super) struct Writing<'a> {
    pub(super) kind: &'a Kind,
    pub(super) owner: Owner,
    pub(super) now: &'a str,
}

impl Writing<'_> {
    /// The time of its entry. A kube-apiserver forgets that of a scale.
    fn time(&self) -> Option<String> {
        (self.owner.subresource != "scale").then(|| self.now.to_owned())
    }
}

/// Fields that somebody else owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) owner: Owner,
    pub(super) fields: Set,
}

/// What applying a configuration has led to.
pub(super) struct Applied {
    /// None, if the object is what it was.
    pub(super) object: Option<Value>,
    pub(super) entries: Vec<Entry>,
}

/// Why a configuration could not be applied.
pub(super) enum NotApplied {
    Conflicts(Vec<Conflict>),
    BadItem(BadItem),
}

impl From<BadItem> for NotApplied {
    fn from(bad: BadItem) -> Self {
        Self::BadItem(bad)
    }
}

/// What has changed, as each version of the kind sees it.
struct Comparisons<'a> {
    kind: &'a Kind,
    old: &'a Value,
    new: &'a Value,
    reset: Set,
    known: Vec<(String, Option<(Comparison, Set)>)>,
}

impl<'a> Comparisons<'a> {
    fn new(writing: &Writing<'a>, old: &'a Value, new: &'a Value) -> Self {
        let reset = reset(writing.kind, &writing.owner.subresource);
        Self { kind: writing.kind, old, new, reset, known: Vec::new() }
    }

    /// The comparison in a version, and what is new in it; none, if the kind has no such version.
    fn of(&mut self, api_version: &str) -> Result<Option<&(Comparison, Set)>, BadItem> {
        let at = match self.known.iter().position(|(known, _)| known == api_version) {
            Some(at) => at,
            None => {
                let compared = match super::schema_of(self.kind, api_version) {
                    Some(schema) => {
                        let comparison = Comparison::of(&schema, self.old, self.new)?.without(&self.reset);
                        let changed = comparison.changed();
                        Some((comparison, changed))
                    }
                    None => None,
                };
                self.known.push((api_version.to_owned(), compared));
                self.known.len() - 1
            }
        };
        Ok(self.known.get(at).and_then(|(_, compared)| compared.as_ref()))
    }
}

/// An update: who changes something owns it, and nobody else does any longer.
pub(super) fn update(
    writing: &Writing<'_>,
    old: &Value,
    new: &Value,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, BadItem> {
    reconcile(writing.kind, &mut entries);
    let mut comparisons = Comparisons::new(writing, old, new);
    take_away(&mut entries, &mut comparisons, None)?;
    let Some((_, changed)) = comparisons.of(&writing.owner.api_version)? else { return Ok(entries) };
    let own = changed.difference(&STRIPPED);
    if !own.is_empty() {
        let time = writing.time();
        match entries.iter_mut().find(|entry| entry.owner.is(&writing.owner)) {
            Some(entry) => {
                let set = std::mem::take(&mut entry.set);
                entry.changed(own.union(set));
                entry.touched(time);
            }
            None => entries.push(Entry::new(writing.owner.clone(), own, time)),
        }
    }
    cap(&mut entries);
    Ok(entries)
}

/// Applies a configuration: what it mentions is so, and owned; what it mentioned before and does not now goes, unless
/// somebody else owns it too.
pub(super) fn apply(
    writing: &Writing<'_>,
    live: &Value,
    config: &Value,
    mut entries: Vec<Entry>,
    force: bool,
) -> Result<Applied, NotApplied> {
    let (kind, owner) = (writing.kind, &writing.owner);
    let Some(schema) = super::schema_of(kind, &owner.api_version) else {
        return Ok(Applied { object: None, entries });
    };
    reconcile(kind, &mut entries);
    let mut object = merged(&schema, live, config)?;
    let set = fields(&schema, config)?.without(&reset(kind, &owner.subresource));
    let last = entries.iter().position(|entry| entry.owner.is(owner)).map(|at| entries.swap_remove(at));
    let last_time = last.as_ref().and_then(|last| last.time.clone());
    entries.push(Entry::new(owner.clone(), set.clone(), last_time));
    if let Some(last) = last
        && !last.set.difference(&set).is_empty()
    {
        object = pruned(kind, object, &entries, &last)?;
    }
    let mut comparisons = Comparisons::new(writing, live, &object);
    if !force {
        let conflicts = conflicts(&entries, &mut comparisons, owner)?;
        if !conflicts.is_empty() {
            return Err(NotApplied::Conflicts(conflicts));
        }
    }
    take_away(&mut entries, &mut comparisons, Some(owner))?;
    let object = (!same(live, &object)).then_some(object);
    if let Some(at) = entries.iter().position(|entry| entry.owner.is(owner)) {
        let entry = &mut entries[at];
        let set = entry.set.difference(&STRIPPED);
        if set.is_empty() {
            entries.swap_remove(at);
        } else {
            entry.changed(set);
            if object.is_some() {
                entry.touched(writing.time());
            }
        }
    }
    Ok(Applied { object, entries })
}

/// Entries in versions that the kind has not go. Others may have been written under another schema.
fn reconcile(kind: &Kind, entries: &mut Vec<Entry>) {
    entries.retain_mut(|entry| {
        let Some(schema) = super::schema_of(kind, &entry.owner.api_version) else { return false };
        // The schemas of built-in kinds do not change.
        if kind.custom && !entry.set.fits(&schema) {
            let set = std::mem::take(&mut entry.set).reconciled(&schema);
            entry.changed(set);
        }
        true
    });
}

/// Takes what has changed away from all but one.
fn take_away(entries: &mut Vec<Entry>, comparisons: &mut Comparisons<'_>, but: Option<&Owner>) -> Result<(), BadItem> {
    let mut kept = Vec::with_capacity(entries.len());
    for mut entry in entries.drain(..) {
        if !but.is_some_and(|owner| entry.owner.is(owner)) {
            let Some((comparison, changed)) = comparisons.of(&entry.owner.api_version)? else { continue };
            for gone in [changed, &comparison.removed] {
                if entry.set.meets(gone) {
                    let set = entry.set.difference(gone);
                    entry.changed(set);
                }
            }
        }
        if !entry.set.is_empty() {
            kept.push(entry);
        }
    }
    *entries = kept;
    Ok(())
}

/// What has changed and is somebody else's, by owner.
fn conflicts(entries: &[Entry], comparisons: &mut Comparisons<'_>, but: &Owner) -> Result<Vec<Conflict>, BadItem> {
    let mut others: Vec<&Entry> = entries.iter().filter(|entry| !entry.owner.is(but)).collect();
    others.sort_by_cached_key(|entry| entry.owner.sort_key());
    let mut conflicts = Vec::new();
    for entry in others {
        let Some((_, changed)) = comparisons.of(&entry.owner.api_version)? else { continue };
        let fields = entry.set.intersection(changed);
        if !fields.is_empty() {
            conflicts.push(Conflict { owner: entry.owner.clone(), fields });
        }
    }
    Ok(conflicts)
}

/// An object without what was applied last time, and neither now nor by anybody else.
fn pruned(kind: &Kind, merged: Value, entries: &[Entry], last: &Entry) -> Result<Value, BadItem> {
    let Some(schema) = super::schema_of(kind, &last.owner.api_version) else { return Ok(merged) };
    let last_set = last.set.clone().with_named_fields(&schema);
    let mut object = without(&schema, &merged, &last_set);
    let mut versions: Vec<&str> = entries.iter().map(|entry| entry.owner.api_version.as_str()).collect();
    versions.sort_unstable_by_key(|version| (*version != last.owner.api_version, *version));
    versions.dedup();
    for version in versions {
        let Some(schema) = super::schema_of(kind, version) else { continue };
        let of_version = entries.iter().filter(|entry| entry.owner.api_version == version);
        let owned = of_version.fold(Set::default(), |set, entry| set.union(entry.set.clone()));
        let kept = named(&schema, &object)?.union(owned.with_named_fields(&schema));
        object = without(&schema, &merged, &named(&schema, &merged)?.difference(&kept));
    }
    // What nobody owns, or somebody who updated it, and was not applied last time either, stays.
    let gone = named(&schema, &merged)?.difference(&named(&schema, &object)?);
    Ok(without(&schema, &merged, &gone.intersection(&last_set)))
}

fn named(schema: &SchemaRef, value: &Value) -> Result<Set, BadItem> {
    Ok(fields(schema, value)?.with_named_fields(schema))
}
