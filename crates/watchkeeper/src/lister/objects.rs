//! What a lister found.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::sync::Arc;

use super::Selector;
use crate::{Cached, Object, Selection, Snapshot};

/// What a [`Lister`](super::Lister) found, at one moment. Cheap to clone.
///
/// It is no vector: objects come out one after the other, in no particular order, as somebody asks for the next. Whatever
/// happens to the store meanwhile, they are those of the moment of the list. Held for long, it keeps what changes in the
/// store alive: see [`Snapshot`].
pub struct Objects<K> {
    view: View,
    namespace: Option<Arc<str>>,
    selector: Option<Selector>,
    of: PhantomData<fn() -> K>,
}

#[derive(Clone)]
enum View {
    None,
    All(Snapshot<Object>),
    Selected(Selection<Object>),
}

impl<K> Objects<K> {
    pub(super) fn none() -> Self {
        Self::new(View::None)
    }

    pub(super) fn all(snapshot: Snapshot<Object>) -> Self {
        Self::new(View::All(snapshot))
    }

    pub(super) fn selected(selection: Selection<Object>) -> Self {
        Self::new(View::Selected(selection))
    }

    fn new(view: View) -> Self {
        Self { view, namespace: None, selector: None, of: PhantomData }
    }

    /// Those of one namespace.
    pub(super) fn of_namespace(self, namespace: Arc<str>) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Those among them whose labels match.
    #[must_use]
    pub fn matching(self, selector: &Selector) -> Self {
        if selector.is_nothing() {
            return Self::none();
        }
        let selector = match &self.selector {
            Some(already) => already.and(selector),
            None => selector.clone(),
        };
        Self { selector: Some(selector).filter(|selector| !selector.is_everything()), ..self }
    }

    /// The objects, one after the other. Each is a handle of its own, which decodes for itself.
    pub fn iter(&self) -> Iter<'_, K> {
        Iter { objects: self, cursor: self.begin() }
    }

    /// The objects without a type, which need not be cloned.
    pub fn untyped(&self) -> impl Iterator<Item = &Object> {
        let mut cursor = self.begin();
        std::iter::from_fn(move || self.next(&mut cursor))
    }

    /// How many there are. Where labels decide, they are gone through.
    pub fn len(&self) -> usize {
        if self.is_filtered() { self.untyped().count() } else { self.most() }
    }

    /// There is none. Where labels decide, this looks for the first that matches.
    pub fn is_empty(&self) -> bool {
        if self.is_filtered() { self.untyped().next().is_none() } else { self.most() == 0 }
    }

    /// As many as there would be if all labels matched.
    fn most(&self) -> usize {
        match &self.view {
            View::None => 0,
            View::All(snapshot) => snapshot.len(),
            View::Selected(selection) => selection.len(),
        }
    }

    fn is_filtered(&self) -> bool {
        self.namespace.is_some() || self.selector.is_some()
    }

    fn begin(&self) -> Cursor {
        Cursor { place: 0, touched: 0, left: self.most() }
    }

    /// The next one, from a place of the view on.
    fn next(&self, cursor: &mut Cursor) -> Option<&Object> {
        while cursor.left > 0 {
            if cursor.place == cursor.touched {
                self.touch_some(cursor);
            }
            let place = self.place(cursor.place)?;
            cursor.place += 1;
            let Some(object) = place else { continue };
            cursor.left -= 1;
            if self.means(object) {
                return Some(object);
            }
        }
        None
    }

    /// The object at a place, which may be empty. Behind the last place there is nothing.
    fn place(&self, place: usize) -> Option<Option<&Object>> {
        match &self.view {
            View::None => None,
            View::All(snapshot) => snapshot.place(place),
            View::Selected(selection) => selection.place(place),
        }
    }

    /// Looks at the headers of the next few. Each of them is somewhere else in memory: so the processor fetches them side by side,
    /// where it would wait for one after the other.
    fn touch_some(&self, cursor: &mut Cursor) {
        let places = cursor.touched..cursor.touched + TOGETHER;
        cursor.touched = places.end;
        places.map_while(|place| self.place(place)).flatten().for_each(Object::touch);
    }

    fn means(&self, object: &Object) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| object.key().namespace() == Some(namespace))
            && self.selector.as_ref().is_none_or(|selector| selector.matches(object.labels()))
    }

    fn size_hint(&self, cursor: &Cursor) -> (usize, Option<usize>) {
        (if self.is_filtered() { 0 } else { cursor.left }, Some(cursor.left))
    }
}

/// How many objects are fetched side by side.
const TOGETHER: usize = 16;

/// How far one has come.
#[derive(Debug, Clone)]
struct Cursor {
    place: usize,
    /// Up to where headers have been touched.
    touched: usize,
    /// How many objects have not been looked at.
    left: usize,
}

/// Borrows [`Objects`], and gives out one after the other.
pub struct Iter<'a, K> {
    objects: &'a Objects<K>,
    cursor: Cursor,
}

impl<K> Iterator for Iter<'_, K> {
    type Item = Cached<K>;

    fn next(&mut self) -> Option<Cached<K>> {
        self.objects.next(&mut self.cursor).cloned().map(Object::typed)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.objects.size_hint(&self.cursor)
    }
}

impl<K> FusedIterator for Iter<'_, K> {}

/// Owns [`Objects`], and gives out one after the other.
pub struct IntoIter<K> {
    objects: Objects<K>,
    cursor: Cursor,
}

impl<K> Iterator for IntoIter<K> {
    type Item = Cached<K>;

    fn next(&mut self) -> Option<Cached<K>> {
        self.objects.next(&mut self.cursor).cloned().map(Object::typed)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.objects.size_hint(&self.cursor)
    }
}

impl<K> FusedIterator for IntoIter<K> {}

impl<K> IntoIterator for Objects<K> {
    type Item = Cached<K>;
    type IntoIter = IntoIter<K>;

    fn into_iter(self) -> IntoIter<K> {
        let cursor = self.begin();
        IntoIter { objects: self, cursor }
    }
}

impl<'a, K> IntoIterator for &'a Objects<K> {
    type Item = Cached<K>;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        let Self { view, namespace, selector, of } = self;
        Self { view: view.clone(), namespace: namespace.clone(), selector: selector.clone(), of: *of }
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.is_filtered() { "at most " } else { "" };
        write!(f, "Objects({most}{})", self.most())
    }
}

impl<K> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Iter({:?})", self.objects)
    }
}

impl<K> fmt::Debug for IntoIter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntoIter({:?})", self.objects)
    }
}
