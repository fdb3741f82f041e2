//! Who is it that is measured? Client-go's `InformerName` and `InformerNameAndResource`.
//!
//! Two informers of one kind would have the same labels, and a scrape with the same series twice is none. So the one who
//! comes first *reserves* the labels, and those who come while it lives are not measured. The name in front of the
//! resource tells apart those who know of each other: two factories of a process take two names.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Names that are in use, each once. Clones are the same.
///
/// What must be unique is unique within one place where metrics go, so that a provider has names of its own:
/// `PrometheusMetrics::names`. A provider that you write has a field of this type.
///
/// ```
/// use watchkeeper::metrics::InformerNames;
///
/// let names = InformerNames::new();
/// let name = names.reserve("web")?;
/// assert!(names.reserve("web").is_err());
///
/// let pods = name.with_resource("", "v1", "pods");
/// assert!(pods.is_reserved());
/// assert!(!name.with_resource("", "v1", "pods").is_reserved());
///
/// drop(name);
/// assert!(!pods.is_reserved());
/// assert!(names.reserve("web").is_ok());
/// # Ok::<(), watchkeeper::metrics::NameError>(())
/// ```
#[derive(Clone, Default)]
pub struct InformerNames(Arc<Mutex<BTreeSet<Arc<str>>>>);

/// A name that is in use until this and its clones are dropped: client-go's `InformerName`.
#[derive(Clone)]
pub struct InformerName(Arc<Reserved>);

/// What an informer's metrics are labelled with. Clones are the same.
#[derive(Clone)]
pub struct InformerIdentity(Arc<Identity>);

/// Why a name cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// It is empty.
    #[error("the name of an informer is empty")]
    Empty,
    /// It is in use.
    #[error("the name {0:?} is in use for other informers; it is free again when they are gone")]
    Taken(Box<str>),
}

struct Reserved {
    name: Arc<str>,
    names: InformerNames,
    resources: Mutex<BTreeSet<Resource>>,
}

struct Identity {
    name: Arc<str>,
    resource: Resource,
    /// Who gave the reservation, if there is one. Weak: an informer that is measured does not keep the name in use.
    reserved_by: Option<Weak<Reserved>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Resource {
    group: Arc<str>,
    version: Arc<str>,
    resource: Arc<str>,
}

impl InformerNames {
    /// No names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a name into use. It must not be empty, and nobody else may have it.
    pub fn reserve(&self, name: &str) -> Result<InformerName, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let name: Arc<str> = name.into();
        if !lock(&self.0).insert(name.clone()) {
            return Err(NameError::Taken((&*name).into()));
        }
        Ok(InformerName(Arc::new(Reserved { name, names: self.clone(), resources: Mutex::default() })))
    }
}

impl InformerName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0.name
    }

    /// The labels of an informer of this resource. The first to ask reserves them: see
    /// [`is_reserved`](InformerIdentity::is_reserved).
    pub fn with_resource(&self, group: &str, version: &str, resource: &str) -> InformerIdentity {
        let resource = Resource::new(group, version, resource);
        let first = lock(&self.0.resources).insert(resource.clone());
        let reserved_by = first.then(|| Arc::downgrade(&self.0));
        InformerIdentity(Arc::new(Identity { name: self.0.name.clone(), resource, reserved_by }))
    }
}

impl InformerIdentity {
    /// The labels of an informer that has no name. They are never reserved: such an informer is not measured.
    pub fn unnamed(group: &str, version: &str, resource: &str) -> Self {
        Self(Arc::new(Identity {
            name: "".into(),
            resource: Resource::new(group, version, resource),
            reserved_by: None,
        }))
    }

    /// Its metrics may be published: it has a name that is still in use, and no other living identity of that name came
    /// before it with this resource.
    pub fn is_reserved(&self) -> bool {
        self.0.reserved_by.as_ref().is_some_and(|name| name.strong_count() > 0)
    }

    /// There are clones of it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whose informer it is.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.resource.group
    }

    /// The version of the group.
    pub fn version(&self) -> &str {
        &self.0.resource.version
    }

    /// The plural of the kind, as in paths.
    pub fn resource(&self) -> &str {
        &self.0.resource.resource
    }
}

impl Resource {
    fn new(group: &str, version: &str, resource: &str) -> Self {
        Self { group: group.into(), version: version.into(), resource: resource.into() }
    }
}

/// The name is free again.
impl Drop for Reserved {
    fn drop(&mut self) {
        lock(&self.names.0).remove(&self.name);
    }
}

/// The resource is free again: an informer that comes after this one is measured.
impl Drop for Identity {
    fn drop(&mut self) {
        if let Some(name) = self.reserved_by.as_ref().and_then(Weak::upgrade) {
            lock(&name.resources).remove(&self.resource);
        }
    }
}

/// Nothing is half done while the lock is held.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for InformerNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerNames").field(&*lock(&self.0)).finish()
    }
}

impl fmt::Debug for InformerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerName").field(&self.0.name).finish()
    }
}

impl fmt::Debug for InformerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerIdentity")
            .field("name", &self.name())
            .field("group", &self.group())
            .field("version", &self.version())
            .field("resource", &self.resource())
            .field("reserved", &self.is_reserved())
            .finish()
    }
}
