//! How the kinds are seen: whole or in part, as which type.

use std::collections::BTreeSet;

use watchkeeper::{ListWatch, Scope};

use crate::kinds::{Kind, NAMESPACES, TIER};

/// What objects are decoded into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The kind's own type.
    Typed,
    /// Any object.
    Dynamic,
    /// The metadata alone, which is all that is asked for.
    Metadata,
}

/// How informers ask.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    /// In pages of so many objects, and not as a stream.
    pub(crate) page_size: Option<u32>,
    /// Watches ask for no timeout, so that the server chooses one.
    pub(crate) server_ends_watches: bool,
}

/// What one informer watches.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) kind: Kind,
    pub(crate) form: Form,
    /// All, if there are none.
    pub(crate) namespaces: Vec<&'static str>,
    pub(crate) labels: Option<String>,
    pub(crate) fields: Option<String>,
}

impl View {
    pub(crate) fn new(kind: Kind, form: Form) -> Self {
        Self { kind, form, namespaces: Vec::new(), labels: None, fields: None }
    }

    pub(crate) fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    pub(crate) fn fields(mut self, selector: &str) -> Self {
        self.fields = Some(selector.to_owned());
        self
    }

    pub(crate) fn namespaces(mut self, namespaces: &[&'static str]) -> Self {
        self.namespaces = namespaces.to_vec();
        self
    }

    /// The requests of an informer carry its tag, so that the server's log tells whose they are.
    pub(crate) fn source(&self, client: kube::Client, tag: &str, how: How) -> ListWatch {
        let scope = match self.namespaces.as_slice() {
            [] => Scope::All,
            [one] => Scope::Namespace((*one).to_owned()),
            several => Scope::Namespaces(several.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>()),
        };
        let tag = tag.to_owned();
        let mut source = ListWatch::new(client, self.kind.resource()).scope(scope);
        if let Some(labels) = &self.labels {
            source = source.labels(labels);
        }
        if let Some(fields) = &self.fields {
            source = source.fields(fields);
        }
        if self.form == Form::Metadata {
            source = source.metadata_only();
        }
        source.tweak(move |options| {
            options.extra.push(("tag".to_owned(), tag.clone()));
            if how.server_ends_watches {
                options.timeout = None;
            }
        })
    }

    /// The namespaces that are asked for one by one.
    pub(crate) fn partitions(&self) -> Vec<Option<&'static str>> {
        match self.namespaces.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        }
    }

    /// The namespaces in which an object is seen.
    pub(crate) fn seen_namespaces(&self) -> Vec<&'static str> {
        match (self.kind.is_namespaced(), self.namespaces.as_slice()) {
            (false, _) => vec![""],
            (true, []) => NAMESPACES.to_vec(),
            (true, some) => some.to_vec(),
        }
    }
}

/// A bit of everything.
pub(crate) fn all() -> Vec<View> {
    use Form::{Dynamic, Metadata, Typed};
    let [a, b, c] = NAMESPACES;
    let tier = format!("{TIER}=a");
    vec![
        View::new(Kind::Pods, Typed),
        View::new(Kind::Pods, Dynamic).labels(&*tier),
        View::new(Kind::Pods, Metadata).namespaces(&[a]),
        View::new(Kind::Pods, Typed).fields("spec.nodeName=node-0"),
        View::new(Kind::Pods, Typed).namespaces(&[a, b]),
        View::new(Kind::ConfigMaps, Typed).namespaces(&[a, b, c]),
        View::new(Kind::ConfigMaps, Dynamic).labels("app in (app-0, app-1),tier=a"),
        View::new(Kind::Secrets, Typed),
        View::new(Kind::Secrets, Metadata).labels(&*tier),
        View::new(Kind::Nodes, Typed),
        View::new(Kind::Nodes, Metadata),
        View::new(Kind::Deployments, Typed),
        View::new(Kind::Deployments, Dynamic).labels(&*tier).namespaces(&[b]),
        // Those elsewhere are the API server's own, which it renews all the time.
        View::new(Kind::Leases, Typed).namespaces(&[a, b, c]),
        View::new(Kind::Sails, Typed),
        View::new(Kind::Sails, Dynamic).labels(&*tier).namespaces(&[a, c]),
        View::new(Kind::Sails, Metadata),
    ]
}
