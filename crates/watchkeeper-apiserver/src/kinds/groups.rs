//! The groups that the kinds are in, and the versions of each group, the preferred ones first.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Kind, Registry};

/// A group with at least one version.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// Whether all of it was registered at run time.
    pub(crate) custom: bool,
    pub(crate) versions: Vec<GroupVersion>,
}

/// A version of a group with at least one kind.
#[derive(Debug, Clone)]
pub(crate) struct GroupVersion {
    /// `v1`
    pub(crate) name: String,
    /// `apps/v1`
    pub(crate) api_version: String,
    pub(crate) kinds: Vec<Arc<Kind>>,
}

impl Registry {
    /// All groups: the built-in ones in the order of a kube-apiserver, which prefers some, then the others by name. The
    /// core group, whose name is empty, is the first.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut positions: BTreeMap<String, usize> = BTreeMap::new();
        for kind in self.all() {
            if kind.versions.is_empty() {
                continue;
            }
            let position = *positions.entry(kind.group.clone()).or_insert(groups.len());
            if position == groups.len() {
                groups.push(Group { name: kind.group.clone(), custom: true, versions: Vec::new() });
            }
            groups[position].add(&kind);
        }
        let built_in = groups.iter().take_while(|group| !group.custom).count();
        groups[built_in..].sort_by(|a, b| a.name.cmp(&b.name));
        for group in &mut groups {
            group.sort();
        }
        groups
    }
}

impl Group {
    fn add(&mut self, kind: &Arc<Kind>) {
        self.custom &= kind.custom;
        for version in &kind.versions {
            match self.versions.iter_mut().find(|known| known.name == version.name) {
                Some(known) => known.kinds.push(kind.clone()),
                None => self.versions.push(GroupVersion {
                    name: version.name.clone(),
                    api_version: version.api_version.clone(),
                    kinds: vec![kind.clone()],
                }),
            }
        }
    }

    /// Built-in versions come in the order of preference, and built-in kinds by name: only what was added is sorted.
    fn sort(&mut self) {
        if self.custom {
            self.versions.sort_by(|a, b| by_preference(&a.name, &b.name));
        }
        for version in &mut self.versions {
            version.kinds.sort_by(|a, b| a.custom.cmp(&b.custom).then_with(|| a.plural.cmp(&b.plural)));
        }
    }
}

/// Which of two versions comes first: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, and then what is no such name.
///
/// Counterpart: `CompareKubeAwareVersionStrings` in `k8s.io/apimachinery/pkg/version`.
pub(crate) fn by_preference(a: &str, b: &str) -> Ordering {
    match (maturity(a), maturity(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    }
}

/// How stable a version is, its major number, and its number among the unstable ones.
fn maturity(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let number = |text: &str| match text.starts_with('0') || text.starts_with('+') {
        true => None,
        false => text.parse().ok(),
    };
    for (word, rank) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((rank, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomResource;

    #[test]
    fn stable_versions_come_first_and_newer_ones_before_older_ones() {
        let mut versions =
            ["foo10", "v1alpha1", "v10beta3", "v1", "foo1", "v11alpha2", "v11beta2", "v2", "v12alpha1", "v10", "v01"];
        versions.sort_by(|a, b| by_preference(a, b));
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10", "v01"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn custom_groups_come_last_and_by_name_whenever_they_came() {
        let registry = Registry::new();
        let before = registry.groups();
        for (group, version, plural) in [
            ("z.example.com", "v1beta1", "betas"),
            ("a.example.com", "v1", "gammas"),
            ("z.example.com", "v1", "betas2"),
            ("a.example.com", "v1", "alphas"),
        ] {
            registry.register(CustomResource::cluster(group, version, "Thing", plural)).expect("a kind");
        }
        let groups = registry.groups();
        assert_eq!(groups.len(), before.len() + 2);
        let shown: Vec<String> = groups[before.len()..]
            .iter()
            .flat_map(|group| &group.versions)
            .map(|version| {
                let kinds: Vec<&str> = version.kinds.iter().map(|kind| kind.plural.as_str()).collect();
                format!("{} {}", version.api_version, kinds.join(","))
            })
            .collect();
        assert_eq!(shown, ["a.example.com/v1 alphas,gammas", "z.example.com/v1 betas2", "z.example.com/v1beta1 betas"]);
    }
}
