//! What a store can be asked for besides keys.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use compact_str::CompactString;
use serde::de::DeserializeOwned;

use super::pointer::Path;
use crate::Object;

/// Finds out the values under which a store finds a `T` again: client-go's `IndexFunc`. Cheap to clone.
///
/// A `T` may have any number of values in an index; of equal ones one counts. Functions must give the same values for the
/// same `T` each time, and must not write to the store. If one panics on a `T`, that is logged, and this `T` has no
/// values in the index.
///
/// Two indexes are the same if they mean the same ([`Index::label`] of one label), or if one is a clone of the other, or
/// if both come from one closure that captures nothing.
pub struct Index<T> {
    id: u64,
    meaning: Meaning,
    values: Arc<Values<T>>,
    /// Finds the values in an object's JSON, for indexes that look into it. False if it is not what it should be.
    from_json: Option<FromJson>,
}

type Values<T> = dyn Fn(&T, &mut Vec<CompactString>) + Send + Sync;
type FromJson = Arc<dyn Fn(&[u8], &mut Vec<CompactString>) -> bool + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    Namespace,
    Label(Box<str>),
    Path(Path),
    /// A function; with its type if that is all there is to it.
    Function(Option<TypeId>),
}

impl<T> Index<T> {
    /// An index by what a function finds: any number of strings.
    pub fn of<F, I>(function: F) -> Self
    where
        F: Fn(&T) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        let meaning = Meaning::function::<F>();
        Self::new(meaning, move |value, out| out.extend(function(value).into_iter().map(|text| text.as_ref().into())))
    }

    fn new(meaning: Meaning, values: impl Fn(&T, &mut Vec<CompactString>) + Send + Sync + 'static) -> Self {
        Self { id: next_id(), meaning, values: Arc::new(values), from_json: None }
    }

    /// Adds the values of `value`.
    pub(super) fn values(&self, value: &T, out: &mut Vec<CompactString>) {
        (self.values)(value, out);
    }

    /// Means the same: see [`Index`].
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.meaning, &other.meaning) {
            (Meaning::Function(None), _) | (_, Meaning::Function(None)) => self.id == other.id,
            (meaning, other) => meaning == other,
        }
    }
}

/// Indexes that look into the body have an identity by which values can travel with a handle.
impl<T> Index<T> {
    /// Different for each index that was made, the same for its clones.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The values stand in the object's body, not in its header.
    pub(crate) fn needs_body(&self) -> bool {
        self.from_json.is_some()
    }

    /// Adds the values that an object with this body has. False if the body is not what the index looks into, so that
    /// there are none. Nothing is added for indexes that need no body.
    pub(crate) fn compute_from_json(&self, json: &[u8], out: &mut Vec<CompactString>) -> bool {
        self.from_json.as_ref().is_none_or(|from_json| from_json(json, out))
    }
}

impl Index<Object> {
    /// By namespace: client-go's `MetaNamespaceIndexFunc`. Objects of cluster-scoped kinds have the empty one.
    pub fn namespace() -> Self {
        Self::new(Meaning::Namespace, |object, out| out.push(object.key().namespace().unwrap_or_default().into()))
    }

    /// By the value of a label. Objects without it have no value.
    pub fn label(label: impl Into<Box<str>>) -> Self {
        let label = label.into();
        Self::new(Meaning::Label(label.clone()), move |object, out| {
            out.extend(object.labels().get(&label).map(CompactString::from));
        })
    }

    /// By a field of the body, which a JSON pointer names: `/spec/nodeName`. Strings, numbers and truth values have
    /// their text for a value, arrays that of each such element; for everything else there is none.
    pub fn field(pointer: &str) -> Self {
        Self::path(Path::pointer(pointer))
    }

    /// By the uids of the owners. (Rows of a [table](crate::ListWatch::table) have their owners elsewhere: [`by`](Self::by)
    /// finds them.)
    pub fn owner_uid() -> Self {
        Self::path(Path::owner_uids())
    }

    /// By what a function finds in a view of the object: any type with those of its fields that matter. Objects that do
    /// not decode into it have no values.
    pub fn by<V, F, I>(function: F) -> Self
    where
        V: DeserializeOwned + 'static,
        F: Fn(&V) -> I + Send + Sync + 'static,
        I: IntoIterator<Item: AsRef<str>>,
    {
        Self::in_body(Meaning::function::<F>(), move |json, out| {
            let Ok(view) = serde_json::from_slice::<V>(json) else { return false };
            out.extend(function(&view).into_iter().map(|text| text.as_ref().into()));
            true
        })
    }

    fn path(path: Path) -> Self {
        Self::in_body(Meaning::Path(path.clone()), move |json, out| {
            path.read(json, out);
            true
        })
    }

    fn in_body(
        meaning: Meaning,
        from_json: impl Fn(&[u8], &mut Vec<CompactString>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let (id, from_json) = (next_id(), Arc::new(from_json));
        let values = {
            let from_json = from_json.clone();
            move |object: &Object, out: &mut Vec<CompactString>| values_in_body(id, object, &*from_json, out)
        };
        Self { id, meaning, values: Arc::new(values), from_json: Some(from_json) }
    }
}

/// The values of an object in an index that looks into its body: those that came with the handle, or else what is found in
/// the body.
fn values_in_body(
    id: u64,
    object: &Object,
    from_json: &dyn Fn(&[u8], &mut Vec<CompactString>) -> bool,
    out: &mut Vec<CompactString>,
) {
    if let Some(values) = object.take_index_values(id) {
        out.extend(values);
    } else if !body(object).is_some_and(|json| from_json(&json, out)) {
        tracing::debug!(object = %object.key(), version = %object.resource_version(), "not indexed: its body does not decode");
    }
}

/// The body of an object, if it can be had.
fn body(object: &Object) -> Option<Bytes> {
    object.json().ok()
}

impl Meaning {
    /// Closures that capture nothing are what their type is. Others may differ in what they captured.
    fn function<F: 'static>() -> Self {
        Self::Function((size_of::<F>() == 0).then(TypeId::of::<F>))
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T> Clone for Index<T> {
    fn clone(&self) -> Self {
        let Self { id, meaning, values, from_json } = self;
        Self { id: *id, meaning: meaning.clone(), values: values.clone(), from_json: from_json.clone() }
    }
}

impl<T> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.meaning).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct View {
        node: String,
    }

    #[test]
    fn indexes_of_the_body_are_computed_from_json_and_others_are_not() {
        let (mut out, json) = (Vec::new(), br#"{"node": "n1"}"#);
        assert!(Index::field("/node").compute_from_json(json, &mut out));
        assert!(Index::by(|view: &View| [view.node.clone()]).compute_from_json(json, &mut out));
        assert!(!Index::by(|view: &View| [view.node.clone()]).compute_from_json(b"{}", &mut out));
        assert_eq!(out, ["n1", "n1"]);
        for (index, needs_body) in [(Index::owner_uid(), true), (Index::namespace(), false), (Index::label("a"), false)]
        {
            assert_eq!(index.needs_body(), needs_body);
        }
    }

    #[test]
    fn clones_share_an_id_and_nothing_else_does() {
        let index = Index::field("/a");
        assert_eq!(index.id(), index.clone().id());
        assert_ne!(index.id(), Index::field("/a").id());
    }
}
