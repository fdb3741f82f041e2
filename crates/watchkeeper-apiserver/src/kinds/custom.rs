//! Custom kinds, as a program registers them.

use super::{Entry, FieldLabels, Kind, Rules, Subresource, Version};

/// What a CustomResourceDefinition says, as far as the server needs it.
///
/// ```
/// use watchkeeper_apiserver::{ApiServer, CustomResource};
///
/// let server = ApiServer::new();
/// let orders = CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")
///     .version("v1beta1")
///     .with_status()
///     .selectable(".spec.customer");
/// server.register(orders)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct CustomResource {
    group: String,
    kind: String,
    plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    namespaced: bool,
    versions: Vec<String>,
    status: bool,
    selectable: Vec<String>,
}

/// A custom resource that cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resource} cannot be served: {reason}")]
pub struct InvalidResource {
    resource: String,
    reason: &'static str,
}

impl CustomResource {
    /// A kind whose objects live in namespaces.
    pub fn namespaced(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            versions: vec![version.to_owned()],
            status: false,
            selectable: Vec::new(),
        }
    }

    /// A kind whose objects live outside of namespaces.
    pub fn cluster(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self { namespaced: false, ..Self::namespaced(group, version, kind, plural) }
    }

    /// One more version. Objects are stored in the first one, and differ in nothing but their `apiVersion`.
    pub fn version(mut self, version: &str) -> Self {
        self.versions.push(version.to_owned());
        self
    }

    /// Status is written apart from the rest.
    pub fn with_status(mut self) -> Self {
        self.status = true;
        self
    }

    /// A field that objects can be selected by, written as in a CustomResourceDefinition: `.spec.colour`.
    pub fn selectable(mut self, path: &str) -> Self {
        self.selectable.push(path.to_owned());
        self
    }

    /// One more name for people in a hurry.
    pub fn short_name(mut self, name: &str) -> Self {
        self.short_names.push(name.to_owned());
        self
    }

    /// A group of kinds that it belongs to: `all`.
    pub fn category(mut self, category: &str) -> Self {
        self.categories.push(category.to_owned());
        self
    }

    /// The kind that it makes.
    pub(super) fn into_kind(self) -> Result<Kind, InvalidResource> {
        let refused = |reason| InvalidResource { resource: super::qualified(&self.plural, &self.group), reason };
        if !self.group.contains('.') || !crate::validation::subdomain(&self.group).is_empty() {
            return Err(refused("its group is no domain with a dot"));
        }
        if !crate::validation::dns_label(&self.plural).is_empty() {
            return Err(refused("its plural is no DNS label"));
        }
        if !self.versions.iter().all(|version| crate::validation::dns_label(version).is_empty()) {
            return Err(refused("a version is no DNS label"));
        }
        if self.kind.is_empty() || !self.kind.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Err(refused("its kind is not made of letters and digits"));
        }
        let versions = self.versions.iter().map(|version| self.served(version)).collect();
        Ok(Kind {
            fields: FieldLabels::custom(&self.kind, self.namespaced, &self.selectable),
            rules: Rules::custom(),
            list_kind: format!("{}List", self.kind),
            group: self.group,
            kind: self.kind,
            plural: self.plural,
            singular: self.singular,
            short_names: self.short_names,
            categories: self.categories,
            namespaced: self.namespaced,
            custom: true,
            versions,
            storage: None,
            terminating: false,
            id: 0,
        })
    }

    fn served(&self, version: &str) -> Version {
        let mut served = Version::new(&self.group, version, &self.kind, true);
        // In the order of the real server.
        served.verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            .map(str::to_owned)
            .to_vec();
        if self.status {
            let verbs = ["get", "patch", "update"];
            served.subresources.push(Subresource {
                name: "status".to_owned(),
                verbs: verbs.map(str::to_owned).to_vec(),
                entry: Entry {
                    name: format!("{}/status", self.plural),
                    namespaced: self.namespaced,
                    kind: self.kind.clone(),
                    verbs: verbs.map(str::to_owned).to_vec(),
                    ..Entry::default()
                },
            });
        }
        served
    }
}
