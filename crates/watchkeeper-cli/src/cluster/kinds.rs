//! Which kinds do people mean?
//!
//! `pods`, `pod`, `po`, `Pod`; `deployments.apps`, `deployments.v1.apps`; `all`; several with commas between them; and
//! `pod/web-0`. Names are looked up as kubectl does it: the core group first, then the others in the server's order.

use std::collections::BTreeSet;

use kube_client::core::ApiResource;

use super::{Access, discovery};
use crate::failure::{Exit, Failure, Outcome};

/// A kind, and what it is called.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    /// Group, version, kind and plural.
    pub api: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// `pod`
    pub singular: String,
    /// `po`
    pub short_names: Vec<String>,
    /// `all`
    pub categories: Vec<String>,
    /// What can be done with it.
    pub verbs: Vec<String>,
}

/// A kind, or one object of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    /// The kind.
    pub resource: Resource,
    /// The object's name; all, if there is none.
    pub name: Option<String>,
}

impl Resource {
    /// `pods`, `deployments.apps`: a name that means this kind and no other.
    pub(crate) fn full_name(&self) -> String {
        match self.api.group.as_str() {
            "" => self.api.plural.clone(),
            group => format!("{}.{group}", self.api.plural),
        }
    }

    /// Whether it can be kept in a cache.
    pub(crate) fn can_be_cached(&self) -> bool {
        ["list", "watch"].iter().all(|needed| self.verbs.iter().any(|verb| verb == needed))
    }

    fn is_called(&self, name: &str) -> bool {
        let names = [&self.api.plural, &self.singular, &self.api.kind];
        names.into_iter().chain(&self.short_names).any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// A word for a kind, taken apart.
struct Word<'a> {
    text: &'a str,
    name: &'a str,
    /// What stands behind the first dot.
    qualifier: Option<&'a str>,
}

impl<'a> Word<'a> {
    fn parse(text: &'a str) -> Self {
        let (name, qualifier) = match text.split_once('.') {
            Some((name, qualifier)) => (name, Some(qualifier)),
            None => (text, None),
        };
        Self { text, name, qualifier }
    }

    fn means(&self, resource: &Resource) -> bool {
        let ApiResource { group, version, .. } = &resource.api;
        let in_group = |qualifier: &str| {
            qualifier == group
                || qualifier.strip_prefix(version.as_str()).is_some_and(|rest| {
                    rest.strip_prefix('.').is_some_and(|rest| rest == group) || (rest.is_empty() && group.is_empty())
                })
        };
        !self.name.is_empty() && resource.is_called(self.name) && self.qualifier.is_none_or(in_group)
    }
}

/// The kinds and objects that are meant by a command's words.
pub(crate) async fn targets(access: &Access, words: &[String]) -> Outcome<Vec<Target>> {
    let Some(first) = words.first() else {
        return Err(Failure::usage("no kind was named").try_this("for example: watchkeeper watch pods"));
    };
    if words.iter().any(|word| word.contains('/')) {
        let mut pairs = Vec::new();
        for word in words {
            match word.split_once('/') {
                Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                    pairs.push((kind.to_owned(), name.to_owned()));
                }
                _ => {
                    return Err(Failure::usage(format!("{word:?} is no KIND/NAME"))
                        .because("one word is KIND/NAME, so all have to be")
                        .try_this("for example: pod/web-0 deployment/web"));
                }
            }
        }
        let kinds: Vec<String> = pairs.iter().map(|(kind, _)| kind.clone()).collect();
        let found = resolve(access, &kinds).await?;
        let mut targets = Vec::new();
        for ((kind, name), resources) in pairs.into_iter().zip(found) {
            let [resource] = resources.as_slice() else {
                return Err(Failure::usage(format!("{kind:?} means several kinds, and {name:?} is one object")));
            };
            let target = Target { resource: resource.clone(), name: Some(name) };
            // Named twice, it is still one object, and each change of it one change.
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        return Ok(targets);
    }
    let kinds: Vec<String> = first.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned).collect();
    if kinds.is_empty() {
        return Err(Failure::usage("no kind was named").try_this("for example: watchkeeper watch pods,deployments"));
    }
    let names = &words[1..];
    if names.iter().any(String::is_empty) {
        return Err(Failure::usage("the name of an object cannot be empty"));
    }
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for resource in resolve(access, &kinds).await?.into_iter().flatten() {
        if !seen.insert((resource.api.group.clone(), resource.api.plural.clone())) {
            continue;
        }
        if names.is_empty() {
            targets.push(Target { resource, name: None });
            continue;
        }
        for name in names {
            let target = Target { resource: resource.clone(), name: Some(name.clone()) };
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Ok(targets)
}

/// All kinds that can be cached: those of the core group first.
pub(crate) async fn all(access: &Access) -> Outcome<Vec<Resource>> {
    let (core, groups) = tokio::join!(discovery::core(access), discovery::groups(access));
    let mut resources = core?;
    resources.extend(groups?.resources);
    resources.retain(Resource::can_be_cached);
    Ok(first_versions(resources))
}

/// What each word means; a category means several.
async fn resolve(access: &Access, words: &[String]) -> Outcome<Vec<Vec<Resource>>> {
    let core = discovery::core(access).await?;
    let in_core = |word: &String| core.iter().find(|resource| Word::parse(word).means(resource)).cloned();
    let found: Vec<Option<Resource>> = words.iter().map(in_core).collect();
    let found = if found.iter().all(Option::is_some) {
        // The usual case, with one request.
        found.into_iter().flatten().map(|resource| vec![resource]).collect()
    } else {
        let groups = discovery::groups(access).await?;
        for (group, failure) in &groups.failed {
            tracing::warn!(group, failure = failure.in_a_line(), "of this group nothing is known");
        }
        let everything: Vec<Resource> = core.iter().cloned().chain(groups.resources).collect();
        let mut all = Vec::new();
        for (word, found) in words.iter().zip(found) {
            all.push(match found {
                Some(resource) => vec![resource],
                None => look_up(word, &everything)
                    .ok_or_else(|| unknown(word, &everything, groups.failed.first(), &access.name))?,
            });
        }
        all
    };
    for resource in found.iter().flatten() {
        if !resource.can_be_cached() {
            return Err(Failure::new(Exit::Error, format!("{} cannot be watched", resource.full_name()))
                .because(format!("the server only has: {}", resource.verbs.join(", "))));
        }
    }
    Ok(found)
}

fn look_up(word: &str, everything: &[Resource]) -> Option<Vec<Resource>> {
    let word = Word::parse(word);
    if let Some(resource) = everything.iter().find(|resource| word.means(resource)) {
        return Some(vec![resource.clone()]);
    }
    let in_category = |resource: &&Resource| {
        resource.can_be_cached() && resource.categories.iter().any(|category| category == word.text)
    };
    let members: Vec<Resource> = everything.iter().filter(in_category).cloned().collect();
    (!members.is_empty()).then(|| first_versions(members))
}

/// Of kinds that are served in several versions the first.
fn first_versions(resources: Vec<Resource>) -> Vec<Resource> {
    let mut seen = BTreeSet::new();
    let mut is_new = |resource: &Resource| seen.insert((resource.api.group.clone(), resource.api.plural.clone()));
    resources.into_iter().filter(|resource| is_new(resource)).collect()
}

fn unknown(word: &str, everything: &[Resource], failed: Option<&(String, Failure)>, cluster: &str) -> Failure {
    let mut failure = Failure::new(Exit::NotFound, format!("{cluster} has no kind {word:?}"));
    if let Some((group, why)) = failed {
        failure =
            failure.because(format!("or it is in {group}, of which nothing could be learnt: {}", why.in_a_line()));
    }
    let name = Word::parse(word).name.to_ascii_lowercase();
    let nearest = everything
        .iter()
        .flat_map(|resource| [&resource.api.plural, &resource.singular].into_iter().chain(&resource.short_names))
        .map(|known| (distance(&name, known), known))
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, known)) if distance <= 1 + name.len() / 4 => failure.try_this(format!("did you mean {known}?")),
        _ => failure.try_this("`kubectl api-resources` lists the kinds that there are"),
    }
}

/// How many letters have to be changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, against) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *against);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, version: &str, kind: &str, plural: &str, short: &[&str]) -> Resource {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        Resource {
            api: ApiResource {
                group: group.into(),
                version: version.into(),
                api_version,
                kind: kind.into(),
                plural: plural.into(),
            },
            namespaced: true,
            singular: kind.to_lowercase(),
            short_names: short.iter().map(|name| (*name).to_owned()).collect(),
            categories: vec!["all".to_owned()],
            verbs: vec!["list".to_owned(), "watch".to_owned()],
        }
    }

    fn everything() -> Vec<Resource> {
        vec![
            resource("", "v1", "Pod", "pods", &["po"]),
            resource("", "v1", "Event", "events", &["ev"]),
            resource("apps", "v1", "Deployment", "deployments", &["deploy"]),
            resource("apps", "v1beta1", "Deployment", "deployments", &["deploy"]),
            resource("events.k8s.io", "v1", "Event", "events", &["ev"]),
        ]
    }

    fn meant(word: &str) -> Option<Vec<String>> {
        let found = look_up(word, &everything())?;
        Some(found.iter().map(|found| format!("{}/{}", found.api.api_version, found.api.plural)).collect())
    }

    #[test]
    fn words_mean_what_kubectl_means_by_them() {
        for (word, one) in [
            ("pods", "v1/pods"),
            ("pod", "v1/pods"),
            ("po", "v1/pods"),
            ("Pod", "v1/pods"),
            ("pods.", "v1/pods"),
            ("pods.v1", "v1/pods"),
            ("ev", "v1/events"),
            ("events.events.k8s.io", "events.k8s.io/v1/events"),
            ("deploy", "apps/v1/deployments"),
            ("deployments.apps", "apps/v1/deployments"),
            ("deployments.v1beta1.apps", "apps/v1beta1/deployments"),
        ] {
            assert_eq!(meant(word), Some(vec![one.to_owned()]), "{word}");
        }
        for word in ["podz", "pods.apps", "deployments.v2.apps", "", "."] {
            assert_eq!(meant(word), None, "{word}");
        }
    }

    #[test]
    fn a_category_means_each_kind_of_it_once() {
        let all = ["v1/pods", "v1/events", "apps/v1/deployments", "events.k8s.io/v1/events"];
        assert_eq!(meant("all"), Some(all.map(str::to_owned).to_vec()));
    }

    #[test]
    fn what_is_nearly_right_is_put_right() {
        for (word, meant) in [("podz", "pods"), ("deployment.", "deployment"), ("deploments", "deployments")] {
            let failure = unknown(word, &everything(), None, "here").to_string();
            assert!(failure.contains(&format!("did you mean {meant}?")), "{failure}");
        }
        assert!(unknown("certificates", &everything(), None, "here").to_string().contains("api-resources"));
    }
}
