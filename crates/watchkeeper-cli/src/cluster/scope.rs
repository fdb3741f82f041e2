//! Which objects of a kind are meant.

use std::collections::BTreeSet;

use clap::Args;
use watchkeeper::{ListWatch, Scope};

use super::{Access, Target};
use crate::failure::{Failure, Outcome};

/// Which objects: kubectl's flags.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which objects")]
pub(crate) struct ScopeOptions {
    /// Objects of this namespace, or of several: shop,bank [default: the context's]
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', conflicts_with = "all_namespaces")]
    pub namespace: Vec<String>,

    /// Objects of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Objects with these labels: app=web,tier!=cache
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// Objects with these fields, where the server has them: spec.nodeName=node-1
    #[arg(long, value_name = "SELECTOR")]
    pub field_selector: Option<String>,
}

impl ScopeOptions {
    /// The namespaces, in words that fit behind a kind: ` in namespace shop`.
    pub(crate) fn describe(&self, access: &Access) -> String {
        match self.names(access) {
            None => String::new(),
            Some(names) if names.len() == 1 => format!(" in namespace {}", names.into_iter().collect::<String>()),
            Some(names) => format!(" in namespaces {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// Where to list and watch a kind, or an object of it.
    pub(crate) fn source(&self, access: &Access, target: &Target) -> Outcome<ListWatch> {
        let mut source = ListWatch::new(access.client.clone(), target.resource.api.clone());
        if let Some(names) = self.names(access).filter(|_| target.resource.namespaced) {
            source = source.scope(scope(names));
        }
        if let Some(selector) = &self.selector {
            watchkeeper::Selector::parse(selector).map_err(|error| {
                Failure::usage(format!("{selector:?} is no label selector"))
                    .because(error)
                    .try_this("for example: -l app=web,tier!=cache or -l 'app in (web, api)'")
            })?;
            source = source.labels(selector.as_str());
        }
        let name = target.name.as_ref().map(|name| format!("metadata.name={}", escape_value(name)));
        let fields: Vec<String> = self.field_selector.clone().into_iter().chain(name).collect();
        if !fields.is_empty() {
            source = source.fields(fields.join(","));
        }
        Ok(source)
    }

    /// The namespaces that are meant; all, if none is named.
    pub(crate) fn names(&self, access: &Access) -> Option<BTreeSet<String>> {
        if self.all_namespaces {
            return None;
        }
        if self.namespace.is_empty() {
            return Some([access.namespace.clone()].into());
        }
        // As in kubectl, `-n ''` is all of them; a comma too many is not.
        let names: BTreeSet<String> = self.namespace.iter().filter(|name| !name.is_empty()).cloned().collect();
        Some(names).filter(|names| !names.is_empty())
    }
}

/// A value in a field selector: names of roles may have anything but slashes in them.
fn escape_value(value: &str) -> String {
    value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=")
}

fn scope(names: BTreeSet<String>) -> Scope {
    match names.first().filter(|_| names.len() == 1) {
        Some(name) => Scope::Namespace(name.clone()),
        None => Scope::Namespaces(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_value_of_a_selector() {
        assert_eq!(escape_value("system:node"), "system:node");
        assert_eq!(escape_value(r"a=b,c\d"), r"a\=b\,c\\d");
    }
}
