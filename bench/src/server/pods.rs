//! Any number of pods, in the order of a server's lists.

use crate::templates::{Body, Format, Template, templates};
use crate::values::{SUFFIXES, name_suffix, template_hash, version};

/// Pods are known by number. What is of pod `n` is the same each time it is asked for.
pub(crate) struct Pods {
    templates: &'static [Template],
    /// The numbers, sorted by namespace and name.
    order: Vec<u32>,
}

impl Pods {
    pub(crate) fn new(count: u32) -> Result<Self, String> {
        if u64::from(count) > SUFFIXES {
            return Err(format!("there are names for {SUFFIXES} pods only: give a smaller --pods"));
        }
        let mut pods = Self { templates: templates(), order: (0..count).collect() };
        let mut order = std::mem::take(&mut pods.order);
        order.sort_by_cached_key(|number| pods.key(*number));
        pods.order = order;
        Ok(pods)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// The numbers, sorted by namespace and name.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    pub(crate) fn template(&self, number: u32) -> &Template {
        &self.templates[number as usize % self.templates.len()]
    }

    pub(crate) fn body(&self, number: u32, format: Format) -> &Body {
        self.template(number).body(format)
    }

    /// `namespace/name`. All namespaces have the same length, so keys sort as pairs of both do.
    pub(crate) fn key(&self, number: u32) -> String {
        let template = self.template(number);
        let (hash, suffix) = (template_hash(number), name_suffix(number));
        let mut key = String::with_capacity(template.namespace.len() + template.app.len() + 18);
        for part in [&template.namespace, "/", &template.app, "-"] {
            key.push_str(part);
        }
        key.extend(hash.iter().chain(b"-").chain(&suffix).map(|byte| char::from(*byte)));
        key
    }

    /// The sum over all pods of FNV-1a 64 of `namespace/name@version`.
    pub(crate) fn digest(&self, revisions: &[u64]) -> u64 {
        let digests = self.order.iter().map(|number| {
            let version = version(*number, revisions[*number as usize]);
            fnv1a(format!("{}@{version}", self.key(*number)).as_bytes())
        });
        digests.fold(0, u64::wrapping_add)
    }
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
