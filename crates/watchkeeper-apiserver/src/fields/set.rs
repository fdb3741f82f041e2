//! A set of paths into an object. Counterpart: `fieldpath.Set` of structured-merge-diff.
//!
//! A set is a tree. Each node is a step of a path; it may be a member itself, and have steps behind it that are. No node
//! is neither, and nodes are sorted: two sets with the same paths are equal.

use std::cmp::Ordering;

use super::element::Element;
use crate::schema::Schema;

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Set {
    nodes: Vec<Node>,
}

/// A step, and what is beneath it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: Element,
    pub(super) member: bool,
    pub(super) children: Set,
}

impl Set {
    /// The set of these nodes. They may come in any order; of repeated ones the union counts.
    pub(super) fn of(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| node.member || !node.children.is_empty());
        if !nodes.is_sorted_by(|one, other| one.element < other.element) {
            nodes.sort_by(|one, other| one.element.cmp(&other.element));
            nodes.dedup_by(|later, first| {
                let repeated = later.element == first.element;
                if repeated {
                    first.member |= later.member;
                    first.children = std::mem::take(&mut first.children).union(std::mem::take(&mut later.children));
                }
                repeated
            });
        }
        Self { nodes }
    }

    /// The set of paths of fields: `["metadata", "name"]`.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let path = |path: &[&str]| {
            path.iter().rev().fold((true, Self::default()), |(member, children), name| {
                (false, Self { nodes: vec![Node { element: Element::field(name), member, children }] })
            })
        };
        paths.iter().fold(Self::default(), |set, fields| set.union(path(fields).1))
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many steps the longest path has.
    pub(super) fn depth(&self) -> usize {
        self.nodes.iter().map(|node| 1 + node.children.depth()).max().unwrap_or(0)
    }

    /// The node of a step.
    pub(super) fn node(&self, element: &Element) -> Option<&Node> {
        let found = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        self.nodes.get(found)
    }

    /// The node of a field.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        let found = self.nodes.binary_search_by(|node| match &node.element {
            Element::Field(field) => (**field).cmp(name),
            _ => Ordering::Greater,
        });
        self.nodes.get(found.ok()?)
    }

    /// Paths of either set.
    pub(crate) fn union(self, other: Self) -> Self {
        if other.is_empty() {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut ones, mut others) = (self.nodes.into_iter().peekable(), other.nodes.into_iter().peekable());
        while let (Some(one), Some(other)) = (ones.peek(), others.peek()) {
            match one.element.cmp(&other.element) {
                Ordering::Less => nodes.extend(ones.next()),
                Ordering::Greater => nodes.extend(others.next()),
                Ordering::Equal => {
                    if let (Some(one), Some(other)) = (ones.next(), others.next()) {
                        let member = one.member || other.member;
                        nodes.push(Node { member, children: one.children.union(other.children), ..one });
                    }
                }
            }
        }
        nodes.extend(ones.chain(others));
        Self { nodes }
    }

    /// Paths of both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let nodes = self.paired(other).filter_map(|(one, other)| {
            let other = other?;
            node(&one.element, one.member && other.member, one.children.intersection(&other.children))
        });
        Self { nodes: nodes.collect() }
    }

    /// Paths of this set that are not in the other. That a path's beginning is in the other means nothing.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let nodes = self.paired(other).filter_map(|(one, other)| match other {
            Some(other) => node(&one.element, one.member && !other.member, one.children.difference(&other.children)),
            None => Some(one.clone()),
        });
        Self { nodes: nodes.collect() }
    }

    /// Paths of this set of which neither they nor a beginning of them is in the other.
    pub(crate) fn without(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let nodes = self.paired(other).filter_map(|(one, other)| match other {
            Some(other) if other.member => None,
            Some(other) => node(&one.element, one.member, one.children.without(&other.children)),
            None => Some(one.clone()),
        });
        Self { nodes: nodes.collect() }
    }

    /// Whether the sets have a path in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let mut pairs = self.paired(other).filter_map(|(one, other)| Some((one, other?)));
        pairs.any(|(one, other)| (one.member && other.member) || one.children.meets(&other.children))
    }

    /// With the fields of structs on the way to each member: usually they are none, because nobody can leave them out.
    pub(super) fn with_named_fields(self, schema: &Schema) -> Self {
        let nodes = self.nodes.into_iter().map(|node| {
            let named = match (&node.element, schema) {
                (Element::Field(name), Schema::Map(map)) => map.fields.contains_key(name) && !node.children.is_empty(),
                _ => false,
            };
            let children = match super::typed::beneath(schema, &node.element) {
                Some(schema) => node.children.with_named_fields(schema),
                None => node.children,
            };
            Node { element: node.element, member: node.member || named, children }
        });
        Self { nodes: nodes.collect() }
    }

    /// How many members it has.
    pub(super) fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// All members, as messages show their paths: those of one level before those beneath it, as Go lists them. Takes
    /// their bytes off `room`, and stops when there is none.
    pub(super) fn shown_paths(&self, room: &mut usize) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), room, &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut String, room: &mut usize, paths: &mut Vec<String>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let path = format!("{prefix}{}", node.element);
            *room = room.saturating_sub(path.len());
            if *room == 0 {
                return;
            }
            paths.push(path);
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            let length = prefix.len();
            prefix.push_str(&node.element.to_string());
            node.children.collect_paths(prefix, room, paths);
            prefix.truncate(length);
            if *room == 0 {
                return;
            }
        }
    }

    /// The nodes of this set, each with that of the other for the same step. One of a few nodes does not look at all of
    /// thousands.
    fn paired<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Node, Option<&'a Node>)> {
        let mut others = other.nodes.as_slice();
        self.nodes.iter().map(move |one| {
            others = others.get(count_before(others, &one.element)..).unwrap_or_default();
            (one, others.first().filter(|other| other.element == one.element))
        })
    }
}

/// How many of sorted nodes come before a step: those of the first 1, 2, 4, 8, ... that do, and then a search.
fn count_before(nodes: &[Node], element: &Element) -> usize {
    let is_before = |node: &Node| node.element < *element;
    let (mut known, mut next) = (0, 1);
    while nodes.get(next - 1).is_some_and(is_before) {
        known = next;
        next *= 2;
    }
    let rest = nodes.get(known..nodes.len().min(next)).unwrap_or_default();
    known + rest.partition_point(is_before)
}

/// A node, if there is anything to it.
fn node(element: &Element, member: bool, children: Set) -> Option<Node> {
    (member || !children.is_empty()).then(|| Node { element: element.clone(), member, children })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    type Paths = BTreeSet<Vec<u8>>;

    fn element(step: u8) -> Element {
        match step % 4 {
            0 => Element::field(&step.to_string()),
            1 => Element::key(vec![("a".into(), step.into())]),
            2 => Element::Value(step.into()),
            _ => Element::Index(step.into()),
        }
    }

    fn set(paths: &Paths) -> Set {
        let path = |path: &Vec<u8>| {
            let (_, set) = path.iter().rev().fold((true, Set::default()), |(member, children), step| {
                (false, Set::of(vec![Node { element: element(*step), member, children }]))
            });
            set
        };
        paths.iter().fold(Set::default(), |set, one| set.union(path(one)))
    }

    fn paths() -> impl Strategy<Value = Paths> {
        prop::collection::btree_set(prop::collection::vec(0..8_u8, 1..4), 0..12)
    }

    proptest! {
        #[test]
        fn sets_of_paths_are_sets(one in paths(), other in paths(), third in paths()) {
            let (a, b, c) = (set(&one), set(&other), set(&third));
            prop_assert_eq!(a.clone().union(b.clone()), set(&one.union(&other).cloned().collect()));
            prop_assert_eq!(a.intersection(&b), set(&one.intersection(&other).cloned().collect()));
            prop_assert_eq!(a.difference(&b), set(&one.difference(&other).cloned().collect()));
            prop_assert_eq!(a.meets(&b), !one.is_disjoint(&other));
            prop_assert_eq!(a.clone().union(b.clone()), b.clone().union(a.clone()));
            prop_assert_eq!(a.clone().union(b.clone().union(c.clone())), a.clone().union(b.clone()).union(c.clone()));
            prop_assert_eq!(a.difference(&b).union(a.intersection(&b)), a.clone());
            prop_assert_eq!(a.difference(&a), Set::default());
            prop_assert_eq!(a.intersection(&b.clone().union(c.clone())), a.intersection(&b).union(a.intersection(&c)));
            let kept = one.iter().filter(|path| !(1..=path.len()).any(|end| other.contains(&path[..end])));
            prop_assert_eq!(a.without(&b), set(&kept.cloned().collect()));
        }

        #[test]
        fn the_paths_of_a_set_are_its_members(one in paths()) {
            let set = set(&one);
            prop_assert_eq!(set.len(), one.len());
            let listed = set.shown_paths(&mut { usize::MAX });
            let path = |path: &Vec<u8>| path.iter().map(|step| element(*step).to_string()).collect::<String>();
            prop_assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), one.iter().map(path).collect());
            prop_assert_eq!(set.depth(), one.iter().map(Vec::len).max().unwrap_or(0));
        }
    }

    #[test]
    fn members_of_a_level_are_listed_before_those_beneath_it() {
        let set = Set::of_fields(&[&["a"], &["a", "b"], &["c"], &["c", "d"]]);
        assert_eq!(set.shown_paths(&mut { 100 }), [".a", ".c", ".a.b", ".c.d"]);
        assert_eq!(set.shown_paths(&mut { 5 }), [".a", ".c"]);
    }
}
